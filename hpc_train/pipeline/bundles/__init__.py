"""What a bundle is made of, and what one holds."""
