"""What a request brings along to say who it is from."""

from base64 import b64encode

from tests.web.stage import TOKEN


def of(who: str, token: str = TOKEN) -> dict[str, str]:
    """Through the proxy, which adds the token."""
    proof = {"Authorization": f"Bearer {token}"} if token else {}
    return {**proof, **({"X-Remote-User": who} if who else {})}


def program(token: str = TOKEN) -> dict[str, str]:
    """Who holds the token, and comes without the proxy."""
    proof = b64encode(f"prometheus:{token}".encode()).decode()
    return {"Authorization": f"Basic {proof}"}
