"""Colours of the page: those that mean different things are apart for every kind of sight.

Method: colours are changed as people without one kind of cone see them (Machado, Oliveira,
Fernandes, "A physiologically-based model for simulation of color vision deficiency", 2009, severity
1.0), and compared as distances in CIE L*a*b* (D65), where about 2.3 can just be told apart.
"""

import itertools
import math
import pathlib
import re
import unittest

CSS = pathlib.Path(__file__).resolve().parents[2] / "daemon" / "page" / "web" / "src" / "page.css"
SIGHT = {
    "all cones": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "protanopia": ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216),
                   (-0.003882, -0.048116, 1.051998)),
    "deuteranopia": ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413),
                     (-0.011820, 0.042940, 0.968881)),
    "tritanopia": ((1.255528, -0.076749, -0.178779), (-0.078411, 0.930809, 0.147602),
                   (0.004733, 0.691367, 0.303900)),
}
TO_XYZ = ((0.4124, 0.3576, 0.1805), (0.2126, 0.7152, 0.0722), (0.0193, 0.1192, 0.9505))
WHITE = (0.9505, 1.0, 1.089)
STEPS = ["u0", "u1", "u2", "u3", "u4"]
APART = 10


def product(matrix, vector):
    return [sum(a * b for a, b in zip(row, vector)) for row in matrix]


def linear(byte):
    share = byte / 255
    return share / 12.92 if share <= 0.04045 else ((share + 0.055) / 1.055) ** 2.4


def lab(colour, sight):
    light = [linear(int(colour[i:i + 2], 16)) for i in (1, 3, 5)]
    seen = [min(1.0, max(0.0, part)) for part in product(SIGHT[sight], light)]
    x, y, z = (part / white for part, white in zip(product(TO_XYZ, seen), WHITE))

    def root(t):
        return t ** (1 / 3) if t > 0.008856 else 7.787 * t + 16 / 116
    return 116 * root(y) - 16, 500 * (root(x) - root(y)), 200 * (root(y) - root(z))


class PaletteTest(unittest.TestCase):
    def test_what_means_different_things_looks_different(self):
        themes = re.findall(r":root(?:\[[^]]*\])? \{(.*?)\n\}", CSS.read_text(), re.S)
        self.assertEqual(2, len(themes))
        for theme, sight in itertools.product(themes, SIGHT):
            colours = dict(re.findall(r"--(\w+): (#[0-9a-f]{6})", theme))
            places = {name: lab(colour, sight) for name, colour in colours.items()}
            pairs = [*itertools.combinations([*STEPS, "down", "ground"], 2),
                     *itertools.combinations([*STEPS, "warn", "ground"], 2),
                     *itertools.combinations(["m0", "m1", "m2", "m3"], 2), ("down", "warn")]
            for one, other in pairs:
                distance = math.dist(places[one], places[other])
                self.assertGreater(distance, APART, f"{one} and {other}: {sight}")


if __name__ == "__main__":
    unittest.main()
