"""Set-ups of an earlier sentinel, upgraded with an alert open: no message is lost and none comes twice."""
