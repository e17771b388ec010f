"""Where the parts of chapters 02 to 12 went next: GPT, images, pretrained models, cheaper attention."""
