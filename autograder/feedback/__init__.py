"""What is said about a verdict: sentences, the report's parts, and the text or HTML made of them."""
