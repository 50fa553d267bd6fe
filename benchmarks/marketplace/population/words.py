"""Words for names and addresses: few, made up, and enough to look at."""

from __future__ import annotations

import random
from typing import Final

FIRST_NAMES: Final = ("Ada", "Bea", "Carl", "Dora", "Emil", "Fay", "Gus", "Hedy", "Ivo", "Jana", "Kai", "Lea", "Max")
LAST_NAMES: Final = ("Aalto", "Berg", "Costa", "Dahl", "Engel", "Faria", "Gomes", "Holm", "Ito", "Jensen", "Klein")
STREETS: Final = ("Canal Street", "Harbour Road", "Hill Lane", "Market Square", "Mill Path", "Station Road")
COMPLEMENTS: Final = ("", "", "", "rear building", "second floor", "left door")
CITIES: Final = (
    ("Delft", "ZH"),
    ("Odense", "FN"),
    ("Porto", "PT"),
    ("Recife", "PE"),
    ("Utrecht", "UT"),
    ("Aarhus", "MJ"),
)
CATEGORIES: Final = (
    "books",
    "clothing",
    "electronics",
    "garden",
    "grocery",
    "kitchen",
    "music",
    "shoes",
    "sports",
    "toys",
)
MATERIALS: Final = ("cotton", "steel", "oak", "paper", "glass", "rubber", "linen", "granite", "plastic", "bronze")
GOODS: Final = (
    "bag",
    "ball",
    "bowl",
    "chair",
    "clock",
    "fork",
    "glove",
    "hat",
    "kettle",
    "lamp",
    "mug",
    "pen",
    "shirt",
)
COMPANIES: Final = ("and Sons", "Trading", "Brothers", "Supplies", "Wholesale", "Works")
BRANDS: Final = ("VISA", "MASTERCARD", "AMEX")
ALPHANUMERIC: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"


def digits(rng: random.Random, count: int) -> str:
    """So many digits."""
    return f"{rng.randrange(10**count):0{count}}"
