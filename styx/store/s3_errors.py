"""What a failed S3 request means to its caller: try again later, or change something first.

It only words errors: it sends nothing and decides nothing about retries. A missing object and a name that is taken are
answers, not errors, and are told apart in `styx/store/s3.py`.
"""

from __future__ import annotations

from typing import Final

from minio.error import InvalidResponseError, MinioException, S3Error
from urllib3.exceptions import HTTPError

from styx.store.base import StoreRefused, StoreUnreachable

_KEYS: Final = "check the access key and the secret key"
_REGION: Final = "the bucket is in another region: give its region, and the endpoint of that region"

_REFUSALS: Final[dict[str, str]] = {
    "AccessDenied": (
        "these keys may not do this: let them get, put, list and delete objects, and ask for the bucket's location"
    ),
    "AccountProblem": "the account is blocked: ask whoever runs the store",
    "AllAccessDisabled": "the bucket is closed: ask whoever runs the store",
    "AuthorizationHeaderMalformed": _REGION,
    "ExpiredToken": "the keys have expired: give new ones",
    "IllegalLocationConstraintException": _REGION,
    "InvalidAccessKeyId": f"the server does not know the access key: {_KEYS}",
    "InvalidBucketName": "the server refuses the bucket's name: 3 to 63 small letters, digits, dots and hyphens",
    "NoSuchBucket": "there is no such bucket: create it, or let the keys create buckets and start again",
    "PermanentRedirect": _REGION,
    "RequestTimeTooSkewed": (
        "the clocks of this machine and of the server are more than 15 minutes apart: set both by a time service"
    ),
    "SignatureDoesNotMatch": f"the secret key does not fit the access key: {_KEYS}",
}
"""What to do, for the codes that no later attempt answers better."""


def described(error: Exception, action: str, where: str) -> StoreUnreachable | StoreRefused:
    """The error to raise for `error`, met in `action` ("put 'a/b' in") on `where` (the bucket and its server)."""
    failed = f"cannot {action} {where}"
    if isinstance(error, S3Error):
        code = error.code or ""
        if code in _REFUSALS or status_of(error) == 403:
            return StoreRefused(f"{failed}: {_REFUSALS.get(code, _REFUSALS['AccessDenied'])} ({code}: {error.message})")
        return StoreUnreachable(f"{failed}: the server answered {code}: {error.message}. It may be overloaded or full")
    if isinstance(error, HTTPError):
        return StoreUnreachable(f"{failed}: {error}. Is the server running, and reachable from here?")
    return StoreUnreachable(f"{failed}: {error}. Is this the address of an S3 server, and is the server healthy?")


def status_of(error: MinioException) -> int | None:
    """The HTTP status that the server answered with; None if `error` does not tell."""
    if isinstance(error, S3Error):
        return error.response.status
    return error._code if isinstance(error, InvalidResponseError) else getattr(error, "status_code", None)
