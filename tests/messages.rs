//! Every message that a user can meet, as the binary prints it: what, where, what was expected, what to do.
//! One file each in `tests/messages`; the models and settings that they need lie in `tests/messages/files`.
//!
//! After a change: `TRYCMD=overwrite cargo test --test messages`, and read what has changed.

#[test]
fn every_message_is_as_it_is_written_down() {
    trycmd::TestCases::new().case("tests/messages/*.trycmd");
}
