"""With how many bits a recorder writes numbers."""


class PrecisionSettings:
    """Which element types a recorder writes and reads: an interface of plain names."""

    float: str  # our names: f16, f32, f64
    int: str
    written: str  # what Burn calls the float type inside a file


class FullPrecisionSettings(PrecisionSettings):
    """Floats as f32, ints as i32: loses nothing of a model trained in f32."""

    float = "f32"
    int = "i32"
    written = "f32"


class HalfPrecisionSettings(PrecisionSettings):
    """Floats as f16, ints as i16: half the bytes, three digits, at most ±65504."""

    float = "f16"
    int = "i16"
    written = "half::binary16::f16"


class DoublePrecisionSettings(PrecisionSettings):
    """Floats as f64, ints as i64."""

    float = "f64"
    int = "i64"
    written = "f64"


Settings = type[PrecisionSettings]
