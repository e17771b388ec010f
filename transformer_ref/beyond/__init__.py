"""What became of the Transformer: chapters 13 to 16, made of the parts of chapters 02 to 12."""
