"""The list of channel kinds. Each is one module, which is imported when it is used."""

GROUP = "sentinel.channels"

KINDS = {
    "alertmanager": "sentinel.channels.alertmanager:Alertmanager",
    "apprise": "sentinel.channels.apprise:Apprise",
    "console": "sentinel.channels.console:Console",
    "discord": "sentinel.channels.discord:Discord",
    "email": "sentinel.channels.email:Email",
    "exec": "sentinel.channels.exec:ExecChannel",
    "file": "sentinel.channels.file:FileChannel",
    "mattermost": "sentinel.channels.mattermost:Mattermost",
    "ntfy": "sentinel.channels.ntfy:Ntfy",
    "opsgenie": "sentinel.channels.opsgenie:Opsgenie",
    "pagerduty": "sentinel.channels.pagerduty:Pagerduty",
    "slack": "sentinel.channels.slack:Slack",
    "teams": "sentinel.channels.teams:Teams",
    "telegram": "sentinel.channels.telegram:Telegram",
    "webhook": "sentinel.channels.webhook:Webhook",
}
