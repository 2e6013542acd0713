"""What `sentinel run` serves to browsers. It is imported only if `web: {listen: …}` is set."""
