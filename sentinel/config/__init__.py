"""The file -> typed settings, with every error at its line (`loader`); the same from the command
line (`options`). Which file applies: `places`."""
