"""Beyond the translator (chapters 13 to 16): new systems, built from the parts of chapters 02 to 12."""
