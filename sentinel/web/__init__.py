"""What `sentinel run` serves to browsers; imported only where `web: {listen: …}` is set."""
