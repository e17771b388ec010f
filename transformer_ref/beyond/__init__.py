"""What attention became after the translator: one module an idea, built from the parts of `transformer_ref.model`."""
