"""The explicit list of channel kinds; each is one module, imported when used."""

GROUP = "sentinel.channels"

KINDS = {
    "console": "sentinel.channels.console:Console",
    "email": "sentinel.channels.email:Email",
    "exec": "sentinel.channels.exec:Exec",
    "file": "sentinel.channels.file:File",
    "webhook": "sentinel.channels.webhook:Webhook",
}
