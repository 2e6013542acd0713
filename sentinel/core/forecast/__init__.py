"""Forecasts when a level reaches its limit, in numbers, words and a picture. Pure."""
