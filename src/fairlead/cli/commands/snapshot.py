"""`fairlead snapshot`: writes the objects of a running cluster to a file, optionally anonymised."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from fairlead.cli import exit_code
from fairlead.cli.options.connection import NO_CONNECTION, ConnectionOptions
from fairlead.cli.options.input import MaxInput
from fairlead.cli.options.parameter import named


def snapshot(
    file: Annotated[Path | None, Parameter(show_default=False)] = None,
    /,
    *,
    connection: ConnectionOptions = NO_CONNECTION,
    source: Annotated[
        str | None,
        Parameter(
            name="--from",
            help="Read this file (a snapshot file or the output of kubectl) instead of a cluster. "
            "With --reveal, the file can contain any text with pseudonyms.",
            metavar="SNAPSHOT",
            show_default=False,
            allow_leading_hyphen=True,
        ),
    ] = None,
    anonymise: Annotated[
        Path | None,
        named(
            "KEYFILE",
            "Replace names by pseudonyms, and write the list of names and pseudonyms to KEYFILE.",
        ),
    ] = None,
    reveal: Annotated[
        Path | None,
        named(
            "KEYFILE",
            "Replace the pseudonyms in the file of --from by the original names from KEYFILE.",
        ),
    ] = None,
    as_list: Annotated[
        bool,
        Parameter(
            name="--list",
            help="Write the objects in full as one List, as kubectl prints them, so that other "
            "programs can read the file.",
            negative=(),
        ),
    ] = False,
    max_input: MaxInput = None,
    rbac: Annotated[
        bool,
        Parameter(
            help="Print the RBAC roles that are needed to read a cluster, and exit.", negative=()
        ),
    ] = False,
) -> int:
    """Read a running cluster, and write to a file the objects that Fairlead needs.

    Without options, the command reads the cluster that kubectl would use. It only lists objects,
    and reads no Secrets and no Events. It reads only one ConfigMap:
    kube-system/cluster-autoscaler-status, which contains the limits of node groups. If you are not
    allowed to read a resource, the command prints the name of the resource. It also says how the
    absence of the resource from the snapshot file changes answers. All commands and scenarios that
    read the output of kubectl also read a snapshot file. The file is smaller than the output of
    kubectl. Pods that differ only in strings, such as names and times, are written as one pod and a
    list of these strings. With --list, all objects are written in full.

    With --anonymise, names, namespaces, images, labels and annotations are replaced by pseudonyms.
    The pseudonyms sort like the original names. Fields that no command reads are removed, and so
    are admission policies, webhooks and ConfigMaps. An answer that does not depend on the removed
    objects stays the same, but contains pseudonyms. To see the original names in an answer, use
    --reveal.

    Try:

        fairlead snapshot cluster.json --context prod
        fairlead snapshot --rbac | kubectl apply -f -
        fairlead snapshot small.json --from dump.json
        fairlead snapshot shared.json --context prod --anonymise names.key
        fairlead snapshot answer.txt --from shared-answer.txt --reveal names.key

    Parameters
    ----------
    file
        Where to write the snapshot file (with --reveal: the text with the original names).
        Required except with --rbac.
    """
    from fairlead.cli.commands.snapshot_anonymous import rewrite, write_anonymised, write_texts
    from fairlead.cli.options.connection import kubeconfigs, read_cluster
    from fairlead.cli.output.distinct_outputs import require_distinct
    from fairlead.cli.output.result_file import print_notice
    from fairlead.whatif.input.error import InputError
    from fairlead.whatif.snapshot.live.live_resource import rbac_manifest, unreadable_notes

    if rbac:
        if (
            file is not None
            or connection.is_given
            or source
            or anonymise
            or reveal
            or as_list
            or max_input
        ):
            raise InputError("--rbac", "prints roles and reads no cluster; use it alone")
        print(rbac_manifest(), end="")
        return exit_code.SUCCESS
    if file is None:
        raise InputError("FILE", "is required, unless --rbac is given")
    if anonymise is not None and anonymise.exists():
        # If the key were replaced, an older snapshot could no longer be revealed.
        raise InputError(
            "--anonymise", "exists already; choose another", object_name=str(anonymise)
        )
    files = {"--anonymise": anonymise, "FILE": file}
    is_live = source is None and reveal is None
    read = kubeconfigs(connection, by_default=is_live)
    require_distinct(files, source, reveal, connection, read)
    if source is not None or reveal is not None:
        if connection.is_given:
            raise InputError("--from", "cannot be combined with a cluster")
        return rewrite(file, source, anonymise, reveal, as_list=as_list, max_input=max_input)
    live = read_cluster(connection, max_input)
    live.refuse_duplicates()
    if anonymise is not None:
        write_anonymised(file, anonymise, live=live, as_list=as_list)
    else:
        write_texts(file, list(live.texts()), live.metadata(), as_list=as_list)
        print_notice(f"snapshot: {file} ({len(live):,} objects of {live.name})")
    for line in unreadable_notes(live.unreadable_resources()):
        print_notice(line)
    return exit_code.SUCCESS
