"""What may befall a cluster and its sentinel at any moment, and whether harm comes of it."""
