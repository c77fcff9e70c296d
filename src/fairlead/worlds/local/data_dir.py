"""DataDir: the directory in which a local cluster stores its objects, CA, keys and users.

    DIR/objects.db        stored objects
    DIR/objects.mark      the last state that was written to objects.db, to detect lost writes
    DIR/ca.crt, ca.key    the CA
    DIR/accounts.key      the key that signs service account tokens
    DIR/tokens            a line for each user: token,user,uid,"group,..."
    DIR/used              exists once objects.db has contained objects, to detect lost objects
    DIR/address           the server's host and port, while the cluster runs
    DIR/port              the server's last port, which the next run uses again if it can

Only the operating-system user who runs the cluster can read these files.

upstream: kube-apiserver's --token-auth-file has the format of `tokens`
"""

from __future__ import annotations

import csv
import os
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from datetime import datetime
from io import StringIO
from pathlib import Path
from stat import S_IMODE, S_IRGRP, S_IROTH, S_ISREG
from typing import TYPE_CHECKING, Final

from msgspec import Struct, structs
from msgspec.structs import replace

from fairlead.apiserver.auth.authentication.token import authenticated
from fairlead.apiserver.auth.certificate_authority import (
    CertificateKeyPair,
    is_certificate,
    is_key,
    new_authority,
)
from fairlead.apiserver.request import ADMIN, AUTHENTICATED, User
from fairlead.worlds.local.kubeconfig import write_secret
from fairlead.worlds.local.random_ids import new_token

if TYPE_CHECKING:
    from fairlead.apiserver.storage.write_ahead_log import WriteAheadLog

OBJECTS: Final = "objects.db"
MARK: Final = "objects.mark"
ADDRESS: Final = "address"
_AUTHORITY: Final = ("ca.crt", "ca.key")
_ACCOUNTS: Final = "accounts.key"
_TOKENS: Final = "tokens"
_USED: Final = "used"
_PORT: Final = "port"


class DataDir(Struct, frozen=True, kw_only=True):
    """The CA, keys and users of a cluster; `users` is keyed by token."""

    authority: CertificateKeyPair
    account_key: str
    users: Mapping[str, User]

    @property
    def admin_token(self) -> str:
        """The token of the administrator."""
        return self.token_of(ADMIN.name)

    def token_of(self, name: str) -> str:
        """Return the token of the user `name`, who must exist."""
        return next(token for token, user in self.users.items() if user.name == name)


def new_data_dir(users: Iterable[User], now: datetime) -> DataDir:
    """Return a DataDir in memory, with new credentials for the administrator and `users`."""
    return DataDir(
        authority=new_authority(now),
        account_key=new_authority(now).key,
        users={new_token(): user for user in (ADMIN, *users)},
    )


def read_data_dir(directory: Path) -> DataDir:
    """Return the contents of an existing data directory. Raises OSError, ValueError."""
    found = _read(directory)
    if found is None:
        raise ValueError(f"{directory / _TOKENS}: is missing")
    return found


def open_data_dir(directory: Path, users: Iterable[User], now: datetime) -> DataDir:
    """Open the data directory, create it if needed, and add new `users`.

    Existing users keep their tokens. New groups of an existing user replace the old groups. Raises
    OSError if the directory cannot be written. Raises ValueError if a file of the directory is
    damaged, or if other users of this machine can read its credentials.
    """
    found = _read(directory)
    fresh = new_data_dir(users, now)
    if found is None:
        _write(directory, fresh)
        return fresh
    merged = replace(found, users=_merged_users(found.users, fresh.users))
    if merged != found:
        _write(directory, merged)
    return merged


def objects_file(directory: Path) -> Path:
    """Return the path of the write-ahead log, after creating it and `directory` if needed.

    Only the user can read the file. Raises OSError.
    """
    directory.mkdir(parents=True, exist_ok=True, mode=0o700)
    path = directory / OBJECTS
    os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
    return path


def backup_files() -> tuple[str, ...]:
    """Return the names of the files that a backup contains besides the database of objects."""
    return (*_AUTHORITY, _ACCOUNTS, _TOKENS)


def data_files(directory: Path) -> tuple[Path, ...]:
    """Return the paths of all files that a cluster can have in `directory`."""
    names = (OBJECTS, MARK, ADDRESS, _PORT, _USED, *backup_files())
    return tuple(directory / name for name in names)


def require_regular_files(directory: Path) -> None:
    """Raise ValueError if a pipe, a device or a directory is in place of a file of a cluster.

    Opening a pipe would wait for another process. Links to regular files are accepted.
    """
    of_log = sorted(directory.glob(f"{Path(OBJECTS).stem}.*"))
    for path in (*data_files(directory), *of_log):
        with suppress(OSError):  # The file does not exist, or cannot be read, which is said later.
            if not S_ISREG(path.stat().st_mode):
                raise ValueError(f"{path}: is not a regular file")


def last_port(directory: Path) -> int:
    """Return the port of the last cluster in `directory`, or 0 if it is not known."""
    with suppress(OSError, ValueError):
        port = int((directory / _PORT).read_text())
        if 0 < port < 1 << 16:
            return port
    return 0


def note_port(directory: Path, port: int) -> None:
    """Store `port` in `directory` for `last_port`. Raises OSError."""
    write_secret(directory / _PORT, str(port))


def note_objects(directory: Path) -> None:
    """Create a file in `directory`; it tells `_missing_objects` that the database had objects."""
    (directory / _USED).touch(mode=0o600)


def lost_data(directory: Path, log: WriteAheadLog) -> str:
    """Return an error text if objects of `log` or the tokens in `directory` are lost, else "".

    `log` is the open database of `directory`. Raises SqliteLogError.
    """
    lost = log.loss() or _missing_credentials(directory)
    if not lost and log.is_empty:
        return _missing_objects(directory)
    return lost


def _missing_credentials(directory: Path) -> str:
    """Return an error text if a cluster has used `directory`, but its tokens are lost, else ""."""
    if not (directory / MARK).exists() or (directory / _TOKENS).exists():
        return ""
    return f"{directory / _TOKENS}: is missing, and with it all users' credentials"


def _missing_objects(directory: Path) -> str:
    """Return an error text if the database in `directory` once contained objects, else "".

    Call this function only if the database is now empty; an error then means that its objects were
    lost. The check does not read DIR/objects.mark, which may be lost, too.
    """
    if not (directory / _USED).exists():
        return ""
    return f"{directory / OBJECTS}: is empty, but a cluster has run in this directory"


def _merged_users(stored: Mapping[str, User], named: Mapping[str, User]) -> dict[str, User]:
    """Return the users `stored` in the directory and the users `named` by the caller, by token.

    A stored user keeps its token. If `named` states groups for a stored user, these groups replace
    the stored groups.
    """
    by_name = {user.name: user for user in named.values()}
    known = {user.name for user in stored.values()}
    regrouped = {token: _regrouped(user, by_name.get(user.name)) for token, user in stored.items()}
    return regrouped | {token: user for token, user in named.items() if user.name not in known}


def _regrouped(user: User, named: User | None) -> User:
    has_groups = named is not None and named.groups != (AUTHENTICATED,)
    return structs.replace(user, groups=named.groups) if has_groups and named is not None else user


def _read(directory: Path) -> DataDir | None:
    if not (directory / _TOKENS).exists():
        return None
    for name in (_AUTHORITY[1], _ACCOUNTS, _TOKENS):
        _require_private(directory / name)
    certificate, key = (_text(directory / name) for name in _AUTHORITY)
    rows = csv.reader(StringIO(_text(directory / _TOKENS)))
    try:
        users = {row[0]: _user(*row[1:]) for row in rows}
    except (IndexError, TypeError) as cause:
        raise ValueError(f"{directory / _TOKENS}: not a file of tokens") from cause
    if ADMIN not in users.values():
        raise ValueError(f"{directory / _TOKENS}: contains no user {ADMIN.name}")
    account_key = _text(directory / _ACCOUNTS)
    _require(directory, _AUTHORITY[0], is_certificate, certificate)
    _require(directory, _AUTHORITY[1], is_key, key)
    _require(directory, _ACCOUNTS, is_key, account_key)
    return DataDir(
        authority=CertificateKeyPair(certificate, key), account_key=account_key, users=users
    )


def _require(directory: Path, name: str, is_one: Callable[[str], bool], text: str) -> None:
    if not is_one(text):
        raise ValueError(f"{directory / name}: is damaged")


def _require_private(path: Path) -> None:
    """Raise ValueError if other users of this machine can read the credentials in `path`."""
    mode = path.stat().st_mode
    if mode & (S_IRGRP | S_IROTH):
        problem = f"can be read by others (mode {S_IMODE(mode):o}); run chmod 600 {path}"
        raise ValueError(f"{path}: {problem}")


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except UnicodeDecodeError:
        raise ValueError(f"{path}: is not text") from None


def _user(name: str, uid: str, groups: str) -> User:
    named = tuple(filter(None, groups.split(",")))
    return ADMIN if name == ADMIN.name else authenticated(name, named, uid)


def _write(directory: Path, content: DataDir) -> None:
    text = StringIO()
    csv.writer(text).writerows(
        (token, user.name, user.uid, ",".join(user.groups[:-1]))
        for token, user in content.users.items()
    )
    texts = dict(
        zip(_AUTHORITY, (content.authority.certificate, content.authority.key), strict=True)
    )
    texts |= {_ACCOUNTS: content.account_key, _TOKENS: text.getvalue()}
    for name, written in texts.items():
        write_secret(directory / name, written)
