//! A bounds-checked reader over bytes, with the variable-length integers of MLIR bytecode.
//!
//! Every method fails instead of reading past the end, and every error carries the offset in the
//! file. Nothing here allocates by a length that the input claims.

/// Why decoding stopped: what was wrong and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// What was expected or found, in a few words.
    pub message: String,
    /// Byte offset in the file.
    pub offset: usize,
}

/// A result whose error knows its place in the file.
pub type Decoded<T> = Result<T, Fault>;

/// A cursor over `bytes[at..end]`; offsets are those of the whole file.
#[derive(Debug, Clone, Copy)]
pub struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
    end: usize,
}

impl<'a> Cursor<'a> {
    /// A cursor over a whole file.
    pub fn new(bytes: &'a [u8]) -> Cursor<'a> {
        Cursor { bytes, at: 0, end: bytes.len() }
    }

    /// A cursor over a span of a file; an impossible span is an empty one.
    pub fn span(bytes: &'a [u8], start: usize, end: usize) -> Cursor<'a> {
        let end = end.min(bytes.len());
        Cursor { bytes, at: start.min(end), end }
    }

    /// Offset in the file.
    pub fn at(&self) -> usize {
        self.at
    }

    /// Bytes that remain.
    pub fn left(&self) -> usize {
        self.end - self.at
    }

    /// Whether nothing remains.
    pub fn is_done(&self) -> bool {
        self.at == self.end
    }

    /// An error at the present place.
    pub fn fault<T>(&self, message: impl Into<String>) -> Decoded<T> {
        Err(Fault { message: message.into(), offset: self.at })
    }

    /// The next byte.
    pub fn byte(&mut self) -> Decoded<u8> {
        if self.at >= self.end {
            return self.fault("unexpected end of data");
        }
        let byte = self.bytes[self.at];
        self.at += 1;
        Ok(byte)
    }

    /// The next `len` bytes.
    pub fn take(&mut self, len: u64) -> Decoded<&'a [u8]> {
        if len > self.left() as u64 {
            return self.fault(format!("{len} bytes wanted, {} left", self.left()));
        }
        let start = self.at;
        self.at += len as usize;
        Ok(&self.bytes[start..self.at])
    }

    /// A prefix-coded unsigned integer.
    pub fn varint(&mut self) -> Decoded<u64> {
        let first = self.byte()?;
        if first & 1 == 1 {
            return Ok(u64::from(first >> 1));
        }
        let extra = first.trailing_zeros().min(8) as usize;
        let rest = self.take(extra as u64)?;
        if extra == 8 {
            let mut value = [0; 8];
            value.copy_from_slice(rest);
            return Ok(u64::from_le_bytes(value));
        }
        let mut value = [0; 8];
        value[0] = first;
        value[1..=extra].copy_from_slice(rest);
        Ok(u64::from_le_bytes(value) >> (extra + 1))
    }

    /// A zig-zag coded signed integer.
    pub fn svarint(&mut self) -> Decoded<i64> {
        let value = self.varint()?;
        Ok((value >> 1) as i64 ^ -((value & 1) as i64))
    }

    /// An unsigned integer whose lowest bit is a flag.
    pub fn flagged(&mut self) -> Decoded<(u64, bool)> {
        let value = self.varint()?;
        Ok((value >> 1, value & 1 == 1))
    }

    /// A varint that must fit an index.
    pub fn index(&mut self) -> Decoded<u32> {
        let value = self.varint()?;
        u32::try_from(value).or_else(|_| self.fault(format!("index {value} is too large")))
    }

    /// A count of items of which each takes at least `least` bytes: more than the bytes left can
    /// hold is an error, so that a count may be used to reserve memory.
    pub fn count(&mut self, least: usize) -> Decoded<usize> {
        let value = self.varint()?;
        self.fits(value, least)
    }

    /// Checks a count as [`Cursor::count`] does.
    pub fn fits(&self, count: u64, least: usize) -> Decoded<usize> {
        if count > (self.left() / least.max(1)) as u64 {
            return self.fault(format!("{count} items cannot fit into {} bytes", self.left()));
        }
        Ok(count as usize)
    }

    /// Skips the padding bytes up to a multiple of `alignment`, counted from the start of the file.
    pub fn align(&mut self, alignment: u64) -> Decoded<()> {
        const LARGEST: u64 = 1 << 16;
        if !alignment.is_power_of_two() || alignment > LARGEST {
            return self.fault(format!("alignment {alignment} is no power of two up to {LARGEST}"));
        }
        while !(self.at as u64).is_multiple_of(alignment) {
            if self.byte()? != 0xCB {
                return self.fault("padding byte is not 0xCB");
            }
        }
        Ok(())
    }

    /// A section header: its id and a cursor over its payload; this cursor moves past it.
    pub fn section(&mut self) -> Decoded<(u8, Cursor<'a>)> {
        let id = self.byte()?;
        let len = self.varint()?;
        if id & 0x80 != 0 {
            let alignment = self.varint()?;
            self.align(alignment)?;
        }
        let start = self.at;
        self.take(len)?;
        Ok((id & 0x7F, Cursor::span(self.bytes, start, self.at)))
    }

    /// The bytes that remain.
    pub fn rest(&self) -> &'a [u8] {
        &self.bytes[self.at..self.end]
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used)]
    use super::*;

    #[test]
    fn varints_of_every_length() {
        for (bytes, value) in [
            (&[0x01][..], 0),
            (&[0xFF][..], 127),
            (&[0x02, 0x02][..], 128),
            (&[0xFE, 0xFF][..], (1 << 14) - 1),
            (&[0x04, 0x00, 0x02][..], 1 << 14),
            (&[0x00, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF][..], u64::MAX),
            // A longer form than needed is accepted.
            (&[0x02, 0x00][..], 0),
        ] {
            let mut cursor = Cursor::new(bytes);
            assert_eq!(cursor.varint().unwrap(), value, "{bytes:02x?}");
            assert!(cursor.is_done());
        }
    }

    #[test]
    fn zigzag() {
        // -1 is stored as 1, the dynamic size as the largest value.
        assert_eq!(Cursor::new(&[0x03]).svarint().unwrap(), -1);
        let dynamic = [0x00, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF];
        assert_eq!(Cursor::new(&dynamic).svarint().unwrap(), i64::MIN);
    }

    #[test]
    fn nothing_is_read_past_the_end() {
        assert_eq!(Cursor::new(&[]).byte().unwrap_err().offset, 0);
        assert!(Cursor::new(&[0x00, 1, 2]).varint().is_err());
        assert!(Cursor::new(&[1, 2]).take(3).is_err());
        // Ten items of three bytes do not fit into two bytes.
        assert!(Cursor::new(&[0x15, 0, 0]).count(3).is_err());
        assert!(Cursor::new(&[0; 8]).align(3).is_err());
        assert!(Cursor::new(&[0x01; 8]).align(1 << 20).is_err());
    }
}
