"""How fast we are, as ratios to what people would pick instead, measured side by side in one process."""
