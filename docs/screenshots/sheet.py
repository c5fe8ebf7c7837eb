"""Contact sheets: many small pictures in one file, each under its name."""

from pathlib import Path

from PIL import Image, ImageDraw, ImageFont

GAP, CAPTION, COLOURS = 14, 20, 128


def write_sheet(pictures: dict[str, Path], columns: int, wide: int, path: Path) -> None:
    """Put `pictures` side by side, `wide` pixels each, in rows of `columns`, into `path`."""
    scaled = []
    for name, file in pictures.items():
        with Image.open(file) as picture:
            high = round(picture.height * wide / picture.width)
            scaled.append(
                (name, picture.convert("RGB").resize((wide, high), Image.Resampling.LANCZOS))
            )
    rows = [scaled[start : start + columns] for start in range(0, len(scaled), columns)]
    heights = [max(picture.height for _, picture in row) + CAPTION + GAP for row in rows]
    sheet = Image.new("RGB", (columns * (wide + GAP) + GAP, sum(heights) + GAP), "#d8dade")
    pen, font, top = ImageDraw.Draw(sheet), ImageFont.load_default(13), GAP
    for row, high in zip(rows, heights, strict=True):
        for place, (name, picture) in enumerate(row):
            left = GAP + place * (wide + GAP)
            pen.text((left, top), name, fill="#1d2430", font=font)
            sheet.paste(picture, (left, top + CAPTION))
        top += high
    path.parent.mkdir(parents=True, exist_ok=True)
    sheet.quantize(colors=COLOURS, dither=Image.Dither.NONE).save(path, optimize=True)
    print(f"{path}: {path.stat().st_size // 1024} kB")
