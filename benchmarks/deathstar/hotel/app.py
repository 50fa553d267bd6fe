"""The travel site as an app: all of its services. Nothing else."""

from __future__ import annotations

from benchmarks.deathstar.hotel.services.flight import flight
from benchmarks.deathstar.hotel.services.geo import geo
from benchmarks.deathstar.hotel.services.hotel import hotel
from benchmarks.deathstar.hotel.services.profile import profile
from benchmarks.deathstar.hotel.services.rate import rate
from benchmarks.deathstar.hotel.services.recommendation import recommendation
from benchmarks.deathstar.hotel.services.reservation import reservation
from benchmarks.deathstar.hotel.services.search import search
from benchmarks.deathstar.hotel.services.user import user
from styx import App

app = App("hotel", [geo, rate, profile, recommendation, user, search, hotel, flight, reservation])
