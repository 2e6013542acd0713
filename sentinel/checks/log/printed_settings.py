"""Whether a text that looks like an error is only a printed setting. Pure."""

import re

_VARIABLE_PATTERN = re.compile(r"[A-Z][A-Z0-9_]{2,60}=")
_SETTING_PATTERN = re.compile(
    r"(?:\b[\w.-]{1,60}|^)=['\"]?$|(?:[{,] ?|^)['\"][\w.-]{1,60}['\"] ?: ?['\"]?$"
)
_MESSAGE_KEY_PATTERN = re.compile(
    r"(?i)err|msg|message|exc|reason|detail|text|log|what|cause|event|status|trace|output"
)


def is_setting(text: str, at: int) -> bool:
    """Whether the text is the value or the name of a printed setting, such as `mode=oom_killer` or
    `CUDA_ERROR_LEVEL=50`. Names with message or error do not count as settings."""
    begin = text.rfind("\n", 0, at) + 1
    if _VARIABLE_PATTERN.match(text, at) or _VARIABLE_PATTERN.match(text, begin, begin + 64):
        return True
    key = _SETTING_PATTERN.search(text[max(begin, at - 70) : at])
    return key is not None and key.end() > 1 and not _MESSAGE_KEY_PATTERN.search(key[0])
