"""How well colors can be told apart, as WCAG 2 defines it."""


def linear(part):
    return part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4


def brightness(color):
    """Relative luminance, between 0 and 1, of `#rrggbb` or of three numbers to 255."""
    parts = bytes.fromhex(color[1:]) if isinstance(color, str) else color
    red, green, blue = (linear(part / 255) for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one, other):
    """Between 1 for equal colors and 21 for black and white."""
    dark, light = sorted((brightness(one), brightness(other)))
    return (light + 0.05) / (dark + 0.05)
