"""ResNet-50 (He et al., arXiv 1512.03385), with the stride in the 3x3 convolutions ("v1.5").

Batch normalisation has the statistics of one rank's micro-batch: unlike the other models, its
result depends on how many ranks share a global batch.
"""

from torch import Tensor, nn
from torch.nn import functional

# Of each of four stages: bottlenecks, and channels inside them; four times as many leave it.
STAGES = ((3, 64), (4, 128), (6, 256), (3, 512))
_EXPANSION = 4


def make_resnet50(channels: int, classes: int) -> nn.Sequential:
    """Return a ResNet-50: float images (n, channels, h, w), h and w 32 or more, to logits."""
    model = nn.Sequential()
    model.add_module("stem", Stem(channels, STAGES[0][1]))
    width = STAGES[0][1]
    for number, (count, inner) in enumerate(STAGES):
        for place in range(count):
            stride = 2 if number and not place else 1
            model.add_module(f"stage{number}block{place}", Bottleneck(width, inner, stride))
            width = inner * _EXPANSION
    model.add_module("output", Head(width, classes))
    return model


class Stem(nn.Module):
    """A 7x7 convolution and a pooling: a quarter of the height and width."""

    def __init__(self, channels: int, width: int) -> None:
        super().__init__()
        self.conv = _convolution(channels, width, 7, stride=2)
        self.norm = nn.BatchNorm2d(width)
        self.pool = nn.MaxPool2d(3, stride=2, padding=1)

    def forward(self, images: Tensor) -> Tensor:
        """Return (n, width, h/4, w/4)."""
        small: Tensor = self.pool(functional.relu(self.norm(self.conv(images))))
        return small


class Bottleneck(nn.Module):
    """Convolutions 1x1, 3x3 and 1x1, added to their input, which has another shape in some."""

    def __init__(self, width: int, inner: int, stride: int) -> None:
        super().__init__()
        wide = inner * _EXPANSION
        self.conv1, self.norm1 = _convolution(width, inner, 1), nn.BatchNorm2d(inner)
        self.conv2 = _convolution(inner, inner, 3, stride=stride)
        self.norm2 = nn.BatchNorm2d(inner)
        self.conv3, self.norm3 = _convolution(inner, wide, 1), nn.BatchNorm2d(wide)
        nn.init.zeros_(self.norm3.weight)  # each block starts as the identity
        self.shortcut: nn.Module = nn.Identity()
        if stride != 1 or width != wide:
            projection = _convolution(width, wide, 1, stride=stride)
            self.shortcut = nn.Sequential(projection, nn.BatchNorm2d(wide))

    def forward(self, hidden: Tensor) -> Tensor:
        """Return (n, 4 inner, h/stride, w/stride)."""
        mixed = functional.relu(self.norm1(self.conv1(hidden)))
        mixed = functional.relu(self.norm2(self.conv2(mixed)))
        return functional.relu(self.norm3(self.conv3(mixed)) + self.shortcut(hidden))


class Head(nn.Module):
    """The mean over height and width, and the classifier."""

    def __init__(self, width: int, classes: int) -> None:
        super().__init__()
        self.classifier = nn.Linear(width, classes)

    def forward(self, hidden: Tensor) -> Tensor:
        """Return logits (n, classes)."""
        logits: Tensor = self.classifier(hidden.mean(dim=(2, 3)))
        return logits


def _convolution(inputs: int, outputs: int, size: int, *, stride: int = 1) -> nn.Conv2d:
    layer = nn.Conv2d(inputs, outputs, size, stride=stride, padding=size // 2, bias=False)
    nn.init.kaiming_normal_(layer.weight, mode="fan_out", nonlinearity="relu")
    return layer
