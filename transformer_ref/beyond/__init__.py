"""Where the parts of chapters 02 to 12 went next: GPT, images, pretrained models, cheaper attention (chapters 13 to 16)."""
