"""One page-wide figure for each chapter: what the chapter says, in one picture, from the chapter's own numbers."""
