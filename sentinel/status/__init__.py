"""What the page, the API, the metrics, `status` and `top` all show: one view model."""
