"""Ids become logits: the parts of the Transformer, in the order of the chapters."""
