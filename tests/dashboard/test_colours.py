"""Colours mean one thing: classes have theirs, verdicts have others, in both themes."""

from itertools import combinations

import numpy as np
import pytest

VERDICTS = ("good", "warn", "bad")
CLASSES = tuple(f"c{place}" for place in range(8))
LEAST_DISTANCE = 0.11  # in OKLab, where 0.02 is about the least that people notice
LEAST_CONTRAST = 3.0  # of a graphical object with what is behind it (WCAG 1.4.11)
READ = """names => names.map(name => getComputedStyle(document.documentElement)
  .getPropertyValue('--' + name).trim())"""


def linear(colour):
    parts = np.array([int(colour[place : place + 2], 16) for place in (1, 3, 5)]) / 255
    return np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)


def oklab(colour):
    cones = np.cbrt(
        np.array(
            [
                [0.4122214708, 0.5363325363, 0.0514459929],
                [0.2119034982, 0.6806995451, 0.1073969566],
                [0.0883024619, 0.2817188376, 0.6299787005],
            ]
        )
        @ linear(colour)
    )
    return (
        np.array(
            [
                [0.2104542553, 0.7936177850, -0.0040720468],
                [1.9779984951, -2.4285922050, 0.4505937099],
                [0.0259040371, 0.7827717662, -0.8086757660],
            ]
        )
        @ cones
    )


def distance(first, second):
    return float(np.linalg.norm(oklab(first) - oklab(second)))


def contrast(first, second):
    light, dark = sorted(
        (float(linear(colour) @ [0.2126, 0.7152, 0.0722]) for colour in (first, second)),
        reverse=True,
    )
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_class_has_the_colour_of_a_verdict_or_of_another_class(site, visiting, scheme):
    with visiting(color_scheme=scheme) as seen:
        seen.open(site.url + "/trail")
        names = (*CLASSES, *VERDICTS, "card")
        colours = dict(zip(names, seen.page.evaluate(READ, list(names)), strict=True))
    for class_ in CLASSES:
        assert contrast(colours[class_], colours["card"]) >= LEAST_CONTRAST, (scheme, class_)
        for verdict in VERDICTS:
            assert distance(colours[class_], colours[verdict]) > LEAST_DISTANCE, (class_, verdict)
    for first, second in combinations(CLASSES, 2):
        assert distance(colours[first], colours[second]) > LEAST_DISTANCE, (first, second)


def test_the_measure_finds_a_class_in_the_colour_of_a_verdict():
    """The negative control: red and green of earlier pages, beside the verdicts' own."""
    assert distance("#a6262a", "#a6262a") == 0
    assert distance("#2b7a4b", "#23703f") < LEAST_DISTANCE
    assert contrast("#b8f4f9", "#ffffff") < LEAST_CONTRAST
