"""The built-in English-Italian corpus: a grammar that writes sentences and their translations."""
