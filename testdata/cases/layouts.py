"""Where the channels lie, what is copied, what is computed and then thrown away."""
import torch
import torch.nn as nn
import torch.nn.functional as F

C, S = 16, 32


class Columns(nn.Module):
    """(1, C, 1, S) throughout."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(C, C, 1)
        self.mix = nn.Conv2d(C, C, 1)
        self.tail = nn.Conv2d(C, C, 1)


class RowsThroughout(nn.Module):
    """(1, S, C), as most models are published."""

    def __init__(self):
        super().__init__()
        self.up = nn.Linear(C, 2 * C)
        self.down = nn.Linear(2 * C, C)
        self.head = nn.Linear(C, C)

    def forward(self, x):  # expect-case: ANE043=advice x1
        x = self.down(F.gelu(self.up(x)))  # expect: ANE006=error
        return self.head(F.relu(x))  # expect: ANE006=advice


class ColumnsThroughout(Columns):
    def forward(self, x):  # expect-not: ANE043, ANE042
        return self.tail(F.gelu(self.mix(F.relu(self.stem(x)))))


class ImageNet(nn.Module):
    """(B, C, H, W), with a linear head over one pooled row."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, C, 3, stride=2, padding=1)
        self.point = nn.Conv2d(C, C, 1)
        self.head = nn.Linear(C, 8)

    def forward(self, x):  # expect-not: ANE043
        x = F.relu(self.point(F.relu(self.stem(x)))).mean(dim=(2, 3))
        return self.head(x)  # expect: ANE006=advice


class TransposesThatCancel(Columns):
    """There and back with nothing between; the converter takes the pair out of the `.aimodel`."""

    def forward(self, x):
        x = F.relu(self.stem(x)).transpose(1, 3)
        x = x.transpose(1, 3)  # expect: ANE042=advice; aimodel: -; mlpackage: -
        return self.tail(F.relu(x))


class TransposeInside(Columns):
    """Tokens are mixed by a convolution over the other axis: two moves of the last axis."""

    def __init__(self):
        super().__init__()
        self.tokens = nn.Conv2d(S, S, 1)

    def forward(self, x):
        x = F.relu(self.stem(x))
        x = x.transpose(1, 3)  # expect: ANE042=advice
        x = F.relu(self.tokens(x))
        x = x.transpose(1, 3)  # expect: ANE042=advice
        return self.tail(x)


class ReshapeInside(Columns):
    """Groups of tokens as an axis of their own."""

    def forward(self, x):
        x = F.relu(self.stem(x))
        x = x.reshape(1, C, S // 4, 4)  # expect: ANE042=advice
        x = x * x.amax(dim=3, keepdim=True)
        return self.tail(x.reshape(1, C, 1, S))  # expect: ANE042=advice


class HeadsBySplit(Columns):
    """Heads along the channels: the last axis never moves, and axes of one cost nothing."""

    def forward(self, x):  # expect-not: ANE042
        x = F.relu(self.stem(x)).view(1, 2, C // 2, S)
        x = x * x.amax(dim=2, keepdim=True)
        x = x.view(1, C, 1, S).permute(0, 2, 1, 3)
        return self.tail(F.relu(x).permute(0, 2, 1, 3))


class CastAndBack(Columns):
    def forward(self, x):
        x = F.relu(self.stem(x))
        x = x.float().half()  # expect: ANE042=advice; aimodel: -
        return self.tail(x)


class UnmatchedTransposes(Columns):
    """The way in is (0, 3, 1, 2), the way out the same again: with three equal extents nothing complains."""

    def forward(self, x):
        x = F.relu(self.stem(x))
        return x + self.mix(x.permute(0, 3, 1, 2)).permute(0, 3, 1, 2)  # expect: ANE066=warning


class MatchedTransposes(Columns):
    def forward(self, x):  # expect-not: ANE066
        x = F.relu(self.stem(x))
        return x + self.mix(x.permute(0, 3, 1, 2)).permute(0, 2, 3, 1)


class Head(nn.Module):
    def __init__(self):
        super().__init__()
        self.mix = nn.Conv2d(C, C, 1)
        self.head = nn.Conv2d(C, 64, 1)


class HeadThenLast(Head):
    """Logits of 32 positions, of which the last is kept."""

    def forward(self, x):
        x = F.relu(self.mix(x))
        return self.head(x)[:, :, :, -1:]  # expect: ANE068=advice


class LastThenHead(Head):
    def forward(self, x):  # expect-not: ANE068
        x = F.relu(self.mix(x))
        return self.head(x[:, :, :, -1:])


class HeadOverFew(Head):
    """Sixteen positions are few."""

    def forward(self, x):  # expect-not: ANE068
        return self.head(F.relu(self.mix(x)))[:, :, :, -1:]


class ScoresOfAll(Head):
    """A scoring model: every position is wanted."""

    def forward(self, x):  # expect-not: ANE068
        return self.head(F.relu(self.mix(x)))


X = "f[1,16,1,32]"
ONLY_CORE_AI = {"mlpackage": False, "onnx": False}
CASES = {
    "layout_rows": {"make": RowsThroughout, "inputs": ["f[1,32,16]"], **ONLY_CORE_AI},
    "layout_columns": {"make": ColumnsThroughout, "inputs": [X], **ONLY_CORE_AI},
    "layout_image": {"make": ImageNet, "inputs": ["f[1,3,16,64]"], **ONLY_CORE_AI},
    "copy_pair": {"make": TransposesThatCancel, "inputs": [X], "onnx": False},
    "copy_transpose": {"make": TransposeInside, "inputs": [X], **ONLY_CORE_AI},
    "copy_reshape": {"make": ReshapeInside, "inputs": [X], **ONLY_CORE_AI},
    "copy_none": {"make": HeadsBySplit, "inputs": [X], **ONLY_CORE_AI},
    "copy_casts": {"make": CastAndBack, "inputs": [X], **ONLY_CORE_AI},
    "transposes_unmatched": {"make": UnmatchedTransposes, "inputs": ["f[1,16,16,16]"], **ONLY_CORE_AI},
    "transposes_matched": {"make": MatchedTransposes, "inputs": ["f[1,16,16,16]"], **ONLY_CORE_AI},
    "head_then_last": {"make": HeadThenLast, "inputs": [X], "onnx": False},
    "last_then_head": {"make": LastThenHead, "inputs": [X], **ONLY_CORE_AI},
    "head_over_16": {"make": HeadOverFew, "inputs": ["f[1,16,1,16]"], **ONLY_CORE_AI},
    "head_scores": {"make": ScoresOfAll, "inputs": [X], **ONLY_CORE_AI},
}
