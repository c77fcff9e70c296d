"""Bad input: one line that names file, object and field; exit code 2; nothing written.

Each case runs the whole command line in its own folder, with standard input.
"""

from __future__ import annotations

import hashlib
import io
import json
import sys
import tarfile
from dataclasses import dataclass
from pathlib import Path

import pytest

from fairlead.cli.main import run

NODE = """\
apiVersion: v1
kind: Node
metadata: {name: n1, labels: {pool: old}}
status: {allocatable: {cpu: "4", memory: 16Gi, pods: "110"}}
"""
BARE_NODE = NODE.partition("status")[0]
POD = """\
apiVersion: v1
kind: Pod
metadata: {name: web, namespace: shop}
spec: {containers: [{name: c, image: i, resources: {requests: {cpu: "1"}}}]}
"""
OTHER_POD = POD.replace("name: web", "name: new")
DEPLOYMENT = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec:
  replicas: 1
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: c, image: i, resources: {requests: {cpu: "1"}}}]}
"""
DEFINITION = """\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.x.io}
spec: {group: x.io, names: {kind: Widget, plural: widgets, shortNames: 5}}
"""
WIDGET = """\
apiVersion: x.io/v1
kind: Widget
metadata: {name: a, namespace: shop}
"""
CRON_JOB = """\
apiVersion: batch/v1
kind: CronJob
metadata: {name: cj, namespace: shop}
spec: {schedule: "* * * * *", jobTemplate: {spec: %s}}
"""
ZONE = "labels: {topology.kubernetes.io/region: %s, topology.kubernetes.io/zone: %s}"
OTHER_DEPLOYMENT = DEPLOYMENT.replace("namespace: shop", "namespace: other")
SECRET = """\
apiVersion: v1
kind: Secret
metadata: {name: s}
data: {password: "not base64!"}
"""
BUDGET = """\
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: b, namespace: shop}
spec: {minAvailable: 1, selector: {matchExpressions: [{key: a, operator: Near, values: [b]}]}}
"""
KUBECONFIG = """\
current-context: a
contexts: [{name: a, context: {cluster: a, user: a}}]
users: [{name: a, user: {token: t}}]
clusters: [{name: a, cluster: {server: %s}}]
"""
CLASS = "apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: %s}\nvalue: %s\n"
VOLCANO = "apiVersion: scheduling.volcano.sh/v1beta1\nkind: "
AUTOSCALER = """apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: h, namespace: shop}
spec: {scaleTargetRef: {kind: Deployment, name: web}, %s}
"""
IN_WEB = "deploy/shop/web:spec.template.spec.containers"
STATUSES = [
    ("StatefulSet", "apps/v1", "{observedGeneration: abc}", "status.observedGeneration"),
    ("StatefulSet", "apps/v1", "{updateRevision: 3}", "status.updateRevision"),
    ("Deployment", "apps/v1", "{collisionCount: a}", "status.collisionCount"),
    ("Deployment", "apps/v1", "{conditions: [{type: 3}]}", "status.conditions[0].type"),
    ("ReplicaSet", "apps/v1", "{replicas: many}", "status.replicas"),
    ("DaemonSet", "apps/v1", "{observedGeneration: abc}", "status.observedGeneration"),
    ("ReplicationController", "v1", "{replicas: many}", "status.replicas"),
    ("CronJob", "batch/v1", "{active: [job]}", "status.active[0]"),
    ("HorizontalPodAutoscaler", "autoscaling/v2", "{currentReplicas: a}", "status.currentReplicas"),
    ("PodDisruptionBudget", "policy/v1", "{conditions: [3]}", "status.conditions[0]"),
]  # fmt: skip
OWNED_BUDGET = """\
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: b, namespace: shop, uid: b, ownerReferences: %s}
spec: {minAvailable: 1, selector: {matchLabels: {a: b}}}
"""
OWNED_JOB = """\
apiVersion: batch/v1
kind: Job
metadata:
  name: j
  namespace: shop
  uid: j
  ownerReferences: [{apiVersion: x.io/v1, kind: Set, name: s, uid: s, controller: true}]
spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: i}]}}}
status: %s
"""
OWNED_SET = DEPLOYMENT.replace("Deployment", "StatefulSet").replace(
    "namespace: shop", "namespace: shop, uid: s, ownerReferences: [x]"
)
# (id, object, its field in the error) of objects that the notes about a dump read
READ_BY_NOTES = [
    ("a budget whose owner is a text", OWNED_BUDGET % "[x]",
     "PodDisruptionBudget shop/b: metadata.ownerReferences[0]"),
    ("a budget whose owners are an object", OWNED_BUDGET % "{a: 1}",
     "PodDisruptionBudget shop/b: metadata.ownerReferences"),
    ("a budget whose owner has a number as version",
     OWNED_BUDGET % "[{apiVersion: 5, kind: K, name: o, uid: o}]",
     "PodDisruptionBudget shop/b: metadata.ownerReferences[0].apiVersion"),
    ("a budget whose owner has a number as kind", OWNED_BUDGET % (
        "[{apiVersion: x.io/v1, kind: s, name: o, uid: o},"
        " {apiVersion: x.io/v1, kind: 5, name: o, uid: o}]"),
     "PodDisruptionBudget shop/b: metadata.ownerReferences[1].kind"),
    ("an owned Job whose status is a text", OWNED_JOB % "x", "Job shop/j: status"),
    ("an owned Job whose condition is a text", OWNED_JOB % "{conditions: [x]}",
     "Job shop/j: status.conditions[0]"),
    ("an owned Job whose conditions are a number", OWNED_JOB % "{conditions: 5}",
     "Job shop/j: status.conditions"),
    ("a StatefulSet whose owner is a text", OWNED_SET,
     "StatefulSet shop/web: metadata.ownerReferences[0]"),
]  # fmt: skip
QUEUE = VOLCANO + "Queue\nmetadata: {name: q}\nspec: "
GROUP = VOLCANO + "PodGroup\nmetadata: {name: g, namespace: shop}\nspec: "
NATIVE_GROUP = """\
apiVersion: scheduling.k8s.io/v1alpha2
kind: PodGroup
metadata: {name: g, namespace: shop}
spec: %s
"""
CORE = "apiVersion: v1\nkind: "
OWNER = "{apiVersion: v1, kind: Node, name: n1, uid: n1, controller: true}"
RANGE = CORE + "LimitRange\nmetadata: {name: l, namespace: shop}\nspec: "
QUOTA = CORE + "ResourceQuota\nmetadata: {name: q, namespace: shop}\nspec: "
NODE_POOL = "apiVersion: karpenter.sh/v1\nkind: NodePool\nmetadata: {name: p}\nspec: {}\n"
CLAIM = (
    CORE + "PersistentVolumeClaim\nmetadata: {name: c, namespace: shop}\n"
    "spec: {resources: {requests: {storage: %s}}}\n"
)
STORAGE_CLASS = "apiVersion: storage.k8s.io/v1\nkind: StorageClass\nmetadata: {name: s}\n%s\n"
VOLUME = CORE + "PersistentVolume\nmetadata: {name: v}\nspec: {capacity: {storage: %s}}\n"
REQUIREMENT = (
    "affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: "
    "{nodeSelectorTerms: [{matchExpressions: [{key: pool, operator: In, values: [3]}]}]}}}"
)
REGISTRATION = "apiVersion: admissionregistration.k8s.io/v1\nkind: "
BINDING = REGISTRATION + "ValidatingAdmissionPolicyBinding\nmetadata: {name: b}\n"
POLICY = (
    REGISTRATION
    + """ValidatingAdmissionPolicy
metadata: {name: p}
spec:
  matchConstraints:
    resourceRules:
    - {apiGroups: [apps], apiVersions: [v1], operations: [UPDATE], resources: [deployments]}
  validations: [{expression: "true"}]
"""
)
UNLIMITED_POLICY = (
    REGISTRATION + "ValidatingAdmissionPolicy\nmetadata: {name: p}\n"
    'spec: {validations: [{expression: "true"}]}\n'
)
BOUND_POLICY = BINDING + "spec: {policyName: p, validationActions: [Deny]}\n"
MALFORMED_POD = POD.replace("image: i,", "image: i, env: [{name: A, value: 5}],").replace(
    "spec: {", "status: {phase: Running}\nspec: {nodeName: n1, "
)
TEMPLATE = "template: {spec: {containers: [{name: c, image: i}], restartPolicy: Never}}"
JOB_SET = (
    "apiVersion: jobset.x-k8s.io/v1alpha2\nkind: JobSet\nmetadata: {name: j, namespace: shop}\n"
    "spec: {replicatedJobs: [{name: w, template: {spec: {" + TEMPLATE + "}}}], %s}\n"
)
VOLCANO_JOB = (
    "apiVersion: batch.volcano.sh/v1alpha1\nkind: Job\nmetadata: {name: j, namespace: shop}\n"
    "spec: {minAvailable: 1, tasks: [{name: w, replicas: 1, " + TEMPLATE + "}]}\n"
)
IN_JOB_SET = "template.spec.template.spec"
HOOKS = REGISTRATION + "MutatingWebhookConfiguration\nmetadata: {name: h}\nwebhooks: "
LEASE = "apiVersion: coordination.k8s.io/v1\nkind: Lease\nmetadata: {name: n1, namespace: a}\n"
SLICE_SPEC = (
    "{driver: x.io, pool: {name: n1, resourceSliceCount: 1}, nodeName: n1, devices: [{name: d}]}"
)
DEFAULT_CLASS = CLASS + "globalDefault: true\n"
SLICE = "apiVersion: resource.k8s.io/v1\nkind: ResourceSlice\nmetadata: {name: s}\n"
PLUGIN = "class P:\n    name = 'P'\n\n    def filter(self, state, pod, node): ...\n"
CREATED = "{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {%s}}"
SCENARIO = "cluster: {generated: {nodes: 2}}\n"
CONFIG = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
BOMB = "\n".join(
    ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    + [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 12)]
)


def placed(name, region, zone):
    """Return NODE with another name, in a zone."""
    return NODE.replace("name: n1", f"name: {name}").replace(
        "labels: {pool: old}", ZONE % (region, zone)
    )


def specified(fields):
    """Return POD with more fields in its spec."""
    return POD.replace("spec: {", f"spec: {{{fields}, ")


def damaged_backup():
    """Return a tar file that is compressed with xz, and damaged in the middle of its content."""
    target = io.BytesIO()
    with tarfile.open(fileobj=target, mode="w:xz") as backup:
        member = tarfile.TarInfo("objects.db")
        member.size = 100_000
        # SHAKE gives bytes that xz cannot shorten.
        backup.addfile(member, io.BytesIO(hashlib.shake_128(b"").digest(member.size)))
    content = bytearray(target.getvalue())
    content[50_000] ^= 255
    return bytes(content)


def documents(*texts):
    return "---\n".join(texts)


ZONED = documents(placed("n1", "r", "zone-a"), placed("n2", "r", "zone-b"))
REGIONAL = documents(placed("n1", "west", "z"), placed("n2", "east", "z"))


@dataclass(frozen=True)
class Case:
    """A command line, its files and standard input, and the words of its one-line error."""

    name: str
    arguments: str
    says: tuple[str, ...]
    files: tuple[tuple[str, str | bytes], ...] = ()
    stdin: bytes = b""


def snapshot(name, content, *says, arguments="whatif dump.yaml"):
    """Return a case of a bad snapshot."""
    return Case(name, arguments, ("dump.yaml", *says), (("dump.yaml", content),))


def load_table(name, table, *says):
    """Return a case of a bad file of --load."""
    files = (("dump.yaml", documents(NODE, DEPLOYMENT)), ("load.csv", table))
    return Case(name, "whatif dump.yaml --load load.csv", says, files)


def sweep(name, arguments, *says):
    """Return a case of a bad sweep of a good scenario."""
    files = (("s.yaml", SCENARIO),)
    return Case(name, f"sweep s.yaml --on processes:1 {arguments}", says, files)


def policy(name, fields, *says):
    """Return a case of a bad policy for the descheduler."""
    head = "apiVersion: descheduler/v1alpha2\nkind: DeschedulerPolicy\n"
    files = (("dump.yaml", documents(NODE, POD)), ("p.yaml", head + fields))
    return Case(name, "whatif dump.yaml --descheduler p.yaml", ("p.yaml", *says), files)


def change(name, arguments, *says, content="", cluster=None, more=()):
    """Return a case of a bad change to a good snapshot."""
    cluster = cluster or documents(NODE, POD, DEPLOYMENT, OTHER_DEPLOYMENT)
    files = [("dump.yaml", cluster), *more]
    if content:
        files.append(("change.yaml", content))
    return Case(name, f"whatif dump.yaml {arguments}", says, tuple(files))


def scenario(name, content, *says, files=()):
    """Return a case of a bad scenario."""
    return Case(name, "simulate s.yaml", says, (("s.yaml", content), *files))


def jobs(name, content, *says):
    """Return a case of a bad configuration of the batch scheduler."""
    files = (("dump.yaml", NODE), ("b.yaml", content))
    return Case(name, "whatif dump.yaml --batch-config b.yaml", ("b.yaml: ", *says), files)


def clock(name, content, *says):
    """Return a case of a bad kubeconfig."""
    return Case(name, "clock show --kubeconfig k", ("k: ", *says), (("k", content),))


def config(name, content, *says):
    """Return a case of a bad scheduler configuration."""
    files = (("dump.yaml", NODE), ("c.yaml", content))
    return Case(name, "whatif dump.yaml --config c.yaml", ("c.yaml", *says), files)


def plan(name, arguments, *says, files=()):
    """Return a case of a bad planning command."""
    cluster = documents(NODE, POD, DEPLOYMENT, OTHER_DEPLOYMENT)
    return Case(name, arguments, says, (("dump.yaml", cluster), *files))


AUDITED = (
    '{"kind":"Event","apiVersion":"audit.k8s.io/v1","level":"Metadata","stage":"ResponseComplete",'
    '"verb":"create","objectRef":{"resource":"pods","namespace":"shop","name":"web",'
    '"subresource":"binding"},"responseStatus":{"code":201}}'
)

QUEUES = documents(
    NODE,
    QUEUE + "{weight: 1, parent: p, capability: {cpu: 4}, deserved: {cpu: 2}}\n",
    QUEUE.replace("name: q", "name: p") + "{weight: 1, capability: {cpu: 8}}\n",
    QUEUE.replace("name: q", "name: c") + "{weight: 1, parent: q, capability: {cpu: 3}}",
)

CASES = [
    change("a label that is not UTF-8", "--set node/n1:metadata.labels.a=\udcff",
           "arguments: 'node/n1:metadata.labels.a=?' is not UTF-8"),
    change("a report whose name is not UTF-8", "--cordon n1 --report \udcff.html",
           "arguments: '?.html' is not UTF-8"),
    change(
        "a JobSet with an unknown startup order", "--apply change.yaml",
        "change.yaml", "JobSet shop/j", "spec.startupPolicy.startupPolicyOrder", "Bogus",
        content=JOB_SET % "startupPolicy: {startupPolicyOrder: Bogus}",
    ),
    change(
        "a success policy that names no replicated job", "--apply change.yaml",
        "JobSet shop/j", "spec.successPolicy.targetReplicatedJobs[0]", "no replicated job 'z'",
        content=JOB_SET % "successPolicy: {operator: Any, targetReplicatedJobs: [z]}",
    ),
    change(
        "a failure policy that names no replicated job", "--apply change.yaml",
        "JobSet shop/j", "spec.failurePolicy.rules[0].targetReplicatedJobs[0]",
        content=JOB_SET % "failurePolicy: {rules: [{targetReplicatedJobs: [z]}]}",
    ),
    change(
        "an immutable field of an edited JobSet",
        "--set jobset/shop/j:spec.replicatedJobs[w].replicas=3",
        "JobSet shop/j", "spec.replicatedJobs: field is immutable",
        cluster=documents(NODE, JOB_SET % "suspend: true"),
    ),
    change(
        "an immutable field of an applied JobSet", "--apply change.yaml",
        "change.yaml", "JobSet shop/j", "spec.replicatedJobs: field is immutable",
        cluster=documents(NODE, JOB_SET % "suspend: true"),
        content=(JOB_SET % "suspend: true").replace("name: w,", "name: w, replicas: 2,"),
    ),
    change("a namespace of no object", "--drain n1 --namespace shop",
           "--namespace: has no effect without --apply, --delete"),
    *(
        change(f"a namespace that contradicts {option} {given}", f"{option} {given} -n other",
               f"{option}: {given.removesuffix('=2')}: shop is not the namespace of --namespace")
        for option, given in (
            ("--delete", "deploy/shop/web"),
            ("--delete", "deploy/shop/app=web"),
            ("--scale", "deploy/shop/web=2"),
        )
    ),
    change("an applied object of another namespace", "--apply change.yaml -n other",
           "change.yaml: Pod shop/new: metadata.namespace: shop is not the namespace of",
           content=OTHER_POD),
    *(
        change(f"{field} of an edited JobSet", f"--set jobset/shop/j:spec.{edit}",
               "--set: JobSet shop/j", f"spec.{field}: ", "immutable",
               cluster=documents(NODE, JOB_SET % f"suspend: false, {given}"))
        for field, edit, given in (
            ("replicatedJobs", f"replicatedJobs[w].{IN_JOB_SET}.nodeSelector={{a:b}}", ""),
            ("network", "network.subdomain=net", ""),
            ("failurePolicy", "failurePolicy.maxRestarts=3", "failurePolicy: {maxRestarts: 1}"),
            ("managedBy", "managedBy=x.io/y", ""),
        )
    ),
    change(
        "an image of a suspended JobSet",
        f"--set jobset/shop/j:spec.replicatedJobs[w].{IN_JOB_SET}.containers[c].image=new",
        "spec.replicatedJobs: field is immutable",
        cluster=documents(NODE, JOB_SET % "suspend: true"),
    ),
    *(
        change(f"the field {field} of an edited Job of Volcano", f"--set vcjob/shop/j:spec.{edit}",
               "--set: Job.batch.volcano.sh shop/j", f"spec.{field}: job updates may not change",
               cluster=documents(NODE, VOLCANO_JOB))
        for field, edit in (
            ("tasks[0]", "tasks[w].template.spec.containers[c].image=new"),
            ("queue", "queue=other"),
        )
    ),
    change(
        "a template of an applied Job of Volcano", "--apply change.yaml",
        "change.yaml", "spec.tasks[0]: job updates may not change",
        cluster=documents(NODE, VOLCANO_JOB), content=VOLCANO_JOB.replace("image: i", "image: new"),
    ),
    *(
        change(f"a queue with {what}", f"--set queue/q:spec.{edit}", "--set: Queue q", says,
               cluster=QUEUES)
        for what, edit, says in (
            ("no weight", "weight=0", "spec.weight: queue weight must be a positive integer"),
            ("itself as parent", "parent=q", "spec.parent: a queue cannot be its own parent"),
            ("a missing parent", "parent=none", "spec.parent: there is no queue none"),
            ("more than it may use", "deserved[cpu]=5", "spec.deserved[cpu]: 5 is more than"),
            ("a high guarantee", "guarantee.resource[cpu]=3", ": 3 is more than the deserved"),
            ("more than its parent", "capability[cpu]=9", "spec.capability[cpu]: 9 is more than"),
            ("less than its child", "capability[cpu]=2", "spec.capability: is less than the 3 cpu"),
            ("an unknown field", "wait=1", "spec.wait: unknown field"),
        )
    ),
    change(
        "an applied queue without its parent", "--apply change.yaml",
        "change.yaml", "Queue q", "spec.parent: there is no queue none",
        content=QUEUE + "{weight: 1, parent: none}",
    ),
    change(
        "a wrong type in an edited JobSet", "--set jobset/shop/j:spec.suspend=maybe",
        "JobSet shop/j", "spec.suspend", cluster=documents(NODE, JOB_SET % "suspend: true"),
    ),
    change(
        "a wrong type in an edited Job of Volcano", "--set vcjob/shop/j:spec.minAvailable=abc",
        "Job.batch.volcano.sh shop/j", "spec.minAvailable",
        cluster=documents(NODE, VOLCANO_JOB),
    ),
    *(
        Case(
            f"explain {target} with a missing batch configuration",
            f"explain dump.yaml {target} --batch-config nosuch", ("nosuch: ",),
            (("dump.yaml", documents(NODE, QUOTA + "{hard: {pods: 1}}")),),
        )
        for target in ("quotas", "quota/shop/q", "nodes", "node/n1", "pc", "queues")
    ),
    snapshot(
        "a wrong type in a field that only an admission policy reads",
        documents(NODE, MALFORMED_POD, POLICY, BOUND_POLICY),
        "Pod shop/web", "spec.containers[0].env[0].value", "cannot unmarshal number",
        arguments="whatif dump.yaml --drain n1 --no-report",
    ),
    snapshot(
        "a drain plan with a wrong type in a field that only an admission policy reads",
        documents(NODE, MALFORMED_POD, POLICY, BOUND_POLICY),
        "Pod shop/web", "spec.containers[0].env[0].value", "cannot unmarshal number",
        arguments="drain-plan dump.yaml --nodes n1",
    ),
    snapshot("a copied pod with the uid of the first", documents(
                 NODE, POD.replace("name: web", "name: a, uid: u"),
                 POD.replace("name: web", "name: b, uid: u")),
             "Pod shop/b: metadata.uid: is also the uid of Pod shop/a"),
    snapshot("two nodes with one uid", documents(
                 NODE.replace("name: n1", "name: n1, uid: u"),
                 NODE.replace("name: n1", "name: n2, uid: u")),
             "Node n2: metadata.uid: is also the uid of Node n1"),
    snapshot("a pod with two controllers", documents(NODE, POD.replace(
                 "namespace: shop", f"namespace: shop, ownerReferences: [{OWNER}, {OWNER}]")),
             "Pod shop/web: metadata.ownerReferences: Invalid value: ", "Only one reference can"),
    snapshot("a quota with a list of used amounts", documents(NODE, QUOTA +
             "{hard: {pods: 1}}\nstatus: {used: [{pods: 1}]}"),
             "ResourceQuota shop/q: status.used: "),
    Case("a name that is too long", "whatif " + "x" * 300, ("xxx: cannot be read: File name too",)),
    # --- admission -----------------------------------------------------------------------------
    snapshot("a policy binding with a text as selector", documents(NODE, BINDING +
             "spec: {policyName: p, matchResources: {namespaceSelector: all}}"),
             "ValidatingAdmissionPolicyBinding b: spec.matchResources.namespaceSelector: "),
    snapshot("a policy binding without a spec", documents(NODE, BINDING),
             "Binding b: Object missing required field `spec`"),
    snapshot("a policy with a number as rule", documents(NODE, REGISTRATION +
             "ValidatingAdmissionPolicy\nmetadata: {name: p}\n"
             "spec: {matchConstraints: {resourceRules: [3]}}"),
             "ValidatingAdmissionPolicy p: spec.matchConstraints.resourceRules[0]: "),
    snapshot("a mutation without a type", documents(NODE, REGISTRATION +
             "MutatingAdmissionPolicy\nmetadata: {name: p}\nspec: {mutations: [{}]}"),
             "MutatingAdmissionPolicy p: spec.mutations[0]: ", "required field `patchType`"),
    snapshot("a policy without constraints", documents(NODE, UNLIMITED_POLICY),
             "ValidatingAdmissionPolicy p: spec.matchConstraints: Required value"),
    snapshot("a policy without operations",
             documents(NODE, POLICY.replace("operations: [UPDATE], ", "")),
             "Policy p: spec.matchConstraints.resourceRules[0].operations: Required value"),
    snapshot("a policy without an expression", documents(NODE, POLICY.replace("true", "")),
             "Policy p: spec.validations[0].expression: Required value"),
    snapshot("a binding with an unknown action", documents(
                 NODE, BOUND_POLICY.replace("Deny", "Refuse")),
             "Binding b: spec.validationActions[0]: Unsupported value"),
    snapshot("a webhook without a client", documents(NODE, HOOKS +
             "[{name: a.b.c, sideEffects: None, admissionReviewVersions: [v1]}]"),
             "MutatingWebhookConfiguration h: webhooks[0].clientConfig: Required value"),
    *(
        snapshot(f"a slice without {what}", documents(NODE, SLICE + "spec: " + SLICE_SPEC.replace(
            removed, "")), f"ResourceSlice s: {says}")
        for what, removed, says in (
            ("a driver", "driver: x.io, ", "spec.driver: Required value"),
            ("a pool", "pool: {name: n1, resourceSliceCount: 1}, ", "spec.pool.name: Required"),
            ("a count", ", resourceSliceCount: 1", "spec.pool.resourceSliceCount: Invalid value"),
            ("a node", "nodeName: n1, ", "spec: Required value: exactly one of `nodeName`"),
            ("names of devices", "name: d", "spec.devices[0].name: Required value"),
        )
    ),
    snapshot("webhooks that are a text", documents(NODE, HOOKS + "all"),
             "MutatingWebhookConfiguration h: webhooks: "),
    snapshot("a webhook with a list as name", documents(NODE, HOOKS + "[{name: [a]}]"),
             "MutatingWebhookConfiguration h: webhooks[0].name: "),
    # --- replays -------------------------------------------------------------------------------
    plan("a log without bodies", "replay a.log",
         "a.log: line 1: create pods/binding was recorded at level Metadata; the audit policy",
         files=(("a.log", AUDITED),)),
    plan("a dump in place of a log", "replay dump.yaml",
         "dump.yaml: line 1: is not an audit event"),
    plan("no log", "replay a.log", "a.log: cannot be read"),
    plan("a tolerance for a log", "replay a.log --tolerance 5s",
         "--tolerance: has no effect, because a.log records nodes of pods, not start times",
         files=(("a.log", AUDITED),)),
    plan("an empty tolerance", "replay a.log --tolerance=", "--tolerance: is empty",
         files=(("a.log", AUDITED),)),
    plan("a folder in place of a log", "replay .", ".: is a directory; expected a file"),
    # --- plans ---------------------------------------------------------------------------------
    plan("a pace of no drain", "drain-plan dump.yaml --max-unavailable 2",
         "--max-unavailable: needs --nodes"),
    plan("a drain of nobody", "drain-plan dump.yaml --nodes pool=x", "--nodes: no node matches"),
    plan("a drain at no pace", "drain-plan dump.yaml --nodes n1 --max-unavailable 0",
         "--max-unavailable: 0 is not from 1 to 1000000"),
    *(plan(f"too many nodes at a time to {command}", f"{command} --max-unavailable 99999999999",
           "--max-unavailable: 99999999999 is not from 1 to 1000000")
      for command in ("drain-plan dump.yaml --nodes n1", "upgrade-check dump.yaml",
                      "consolidate dump.yaml")),
    *(plan(f"too large a part at a time to {command}", f"{command} --max-unavailable 101%",
           "--max-unavailable: 101% is not from 1% to 100%")
      for command in ("drain-plan dump.yaml --nodes n1", "upgrade-check dump.yaml",
                      "consolidate dump.yaml", "whatif dump.yaml --drain n1")),
    plan("a removal of nothing", "consolidate dump.yaml --max 0", "--max: 0 is not from 1 to"),
    plan("a removal of a part of a node", "consolidate dump.yaml --max 0%",
         "--max: 0% is not from 1% to 100%"),
    plan("a drain for a while", "drain-plan dump.yaml --nodes n1 --for soon",
         "--for: 'soon' is not a duration"),
    plan("an upgrade with too much surge", "upgrade-check dump.yaml --surge 101",
         "--surge: 101 is not from 0 to 100"),
    plan("an upgrade of an unknown node", "upgrade-check dump.yaml --nodes n7",
         "--nodes: there is no Node n7; known: n1"),
    plan("an upgrade of an unknown version", "upgrade-check dump.yaml --behave-like 1.17",
         "--behave-like: unknown version '1.17'"),
    plan("consolidation of nobody", "consolidate dump.yaml --nodes pool=x", "no node matches"),
    plan("an unknown rule", "consolidate dump.yaml --ignore gravity", "gravity"),
    *(plan(f"instance types in {files}", f"{command} dump.yaml --instance-types {files}",
           f"fairlead: --instance-types: '{files}' has no file before or after a comma")
      for command, files in (("size", ","), ("consolidate", "t.csv,"))),
    plan("a listing without types", "consolidate dump.yaml --instance-types n.csv",
         "n.csv: has no column 'cpu'", files=(("n.csv", "name\na\n"),)),
    plan("survival of nothing known", "size dump.yaml --survive rack",
         "--survive: 'rack' is not zone, node or nodes=N"),
    plan("survival of zones without zones", "size dump.yaml --survive zone",
         "--survive: zone: no node has a zone (label topology.kubernetes.io/zone)"),
    plan("survival of more nodes than exist", "size dump.yaml --survive nodes=99",
         "--survive: nodes=99 is more than 10, the most for a cluster of 1 node"),
    plan("a size of nodes without a size", "size n.yaml",
         "n.yaml: Node n1: status.allocatable: is absent or empty, so the size of the node is "
         "unknown; --keep n1 leaves it as it is", files=(("n.yaml", BARE_NODE),)),
    plan("headroom of all", "size dump.yaml --headroom 100%", "--headroom: '100%' is not a share"),
    plan("keeping every node", "size dump.yaml --keep n1", "--keep: matches every node"),
    plan("types of another architecture", "size dump.yaml --instance-types n.csv",
         "--instance-types: n.csv: has no type for the architectures",
         files=(("n.csv", "name,cpu,memory,arch,price\na,4,16Gi,arm64,1\n"),)),
    plan("scaling nothing known before a count",
         "fit dump.yaml --like deploy/shop/web --scale deploy/gone=3",
         "--scale: there is no Deployment gone"),
    plan("applying a missing file before a count", "fit dump.yaml --pod p.yaml --apply gone.yaml",
         "gone.yaml: cannot be read", files=(("p.yaml", POD),)),
    plan("scaling nothing known in a plan", "size dump.yaml --scale deploy/gone=3",
         "--scale: there is no Deployment gone"),
    plan("scaling without a number in a plan", "size dump.yaml --scale deploy/web",
         "--scale: 'deploy/web' is not WORKLOAD/NAME=REPLICAS"),
    plan("applying a missing file in a plan", "size dump.yaml --apply gone.yaml",
         "gone.yaml: cannot be read"),
    plan("a namespace of nothing in a plan", "size dump.yaml -n shop",
         "--namespace: has no effect without --apply, --scale or --set"),
    plan("no effort", "size dump.yaml --effort 0", "--effort: 0 is not from 1 to 100,000"),
    plan("no moves", "rebalance dump.yaml --moves 0", "--moves: 0 is not from 1 to 10,000"),
    plan("moves nowhere", "rebalance none.yaml", "none.yaml: cannot be read"),
    plan("fit of nothing", "fit dump.yaml", "arguments: name either --pod FILE or --like KIND/"),
    plan("fit nowhere", "fit --like deploy/shop/web",
         "arguments: name a dump (SNAPSHOT), or a cluster"),
    plan("fit a file without pods", "fit dump.yaml --pod n.yaml",
         "n.yaml: contains 0 pods and workloads; expected one", files=(("n.yaml", NODE),)),
    plan("fit an unschedulable limit", "fit dump.yaml --like deploy/shop/web --max-limit 0",
         "--max-limit: 0 is not from 1 to 1,000,000"),
    plan("fit an ambiguous name", "fit dump.yaml --like deploy/web",
         "--like: deploy/web is in several namespaces (other, shop); name one of them"),
    plan("fit a pod with a misspelt field", "fit dump.yaml --pod p.yaml",
         "p.yaml: Pod shop/web: spec.containrs: unknown field; did you mean containers?",
         files=(("p.yaml", POD.replace("containers", "containrs")),)),
    plan("fit an invalid pod", "fit dump.yaml --pod p.yaml", "p.yaml: Pod shop/web: spec.cont",
         files=(("p.yaml", POD.replace('"1"', "-1")),)),
    plan("instance types of any price", "size dump.yaml --instance-types t.csv",
         "t.csv: instance type a: the price inf is not a number from 0 to",
         files=(("t.csv", "name,cpu,memory,price\na,2,8Gi,inf\n"),)),
    plan("instance types that pay", "consolidate dump.yaml --instance-types t.csv",
         "t.csv: instance type a: the price -1.0 is not a number from 0 to",
         files=(("t.csv", "name,cpu,memory,price\na,2,8Gi,-1\n"),)),
    # --- files ---------------------------------------------------------------------------------
    change(
        "autoscaler without groups",
        "--autoscale cluster-autoscaler",
        "--autoscale: no node has a label of a node group",
    ),
    change(
        "groups for nobody",
        "--node-groups g.yaml",
        "--node-groups: needs --autoscale cluster-autoscaler",
    ),
    change(
        "bad node group",
        "--autoscale cluster-autoscaler --node-groups change.yaml",
        "change.yaml: line 1: node-groups[0].max: expected int, got str",
        content="node-groups: [{name: g, min: 0, max: many, labels: {pool: old}}]\n",
    ),
    Case("no gangs in a running batch scheduler",
         "run --kubeconfig k --controllers scheduler,batch --batch-config single-pods",
         ("--batch-config: ", "single-pods is for simulations")),
    Case("loss without a data directory", "up --accept-loss", ("--accept-loss: needs --data-dir",)),
    Case("a file as a data directory", "up --data-dir c.yaml",
         ("--data-dir: c.yaml: is not a directory\n",), (("c.yaml", NODE),)),
    Case("a backup restored to a file", "restore b.tar --data-dir c.yaml",
         ("--data-dir: c.yaml: is not a directory\n",), (("b.tar", ""), ("c.yaml", NODE))),
    Case("a damaged compressed backup", "restore b.tar.xz --data-dir new",
         ("restore: b.tar.xz: is not a backup",), (("b.tar.xz", damaged_backup()),)),
    Case("level without audit log", "up --audit-level Request", ("--audit-level: needs --audit",)),
    *(snapshot(f"a NodePool with malformed {field} in a local cluster", documents(NODE, pool),
               f"NodePool p: {field}", arguments=f"up --snapshot dump.yaml --autoscale {chosen}")
      for field, pool, chosen in (
          ("spec.limits.cpu", NODE_POOL.replace("{}", "{limits: {cpu: lots}}"), "karpenter"),
          ("spec.disruption", NODE_POOL.replace("{}", "{disruption: {consolidateAfter: 5x}}"),
           "auto"),
      )),
    Case("instance types of a local cluster", "up --instance-types types.csv",
         ("--instance-types: needs --autoscale karpenter",)),
    Case("node groups of Karpenter", "up --autoscale karpenter --node-groups g.yaml",
         ("--node-groups: needs --autoscale cluster-autoscaler",)),
    Case("provision time without an autoscaler", "up --provision-time 1m",
         ("--provision-time: needs --autoscale",)),
    Case("two provision times",
         "up --autoscale karpenter --provision-time 1m --provision-time 2m",
         ("--provision-time: the time of all groups is given twice",)),
    Case("two provision times of a group",
         "up --autoscale karpenter --provision-time a=1m --provision-time a=2m",
         ("--provision-time: the time of a is given twice",)),
    Case("provision time of no group", "up --autoscale cluster-autoscaler --provision-time b=1m",
         ("--provision-time: no node group 'b'; known: zone-a",)),
    Case("node pools without Karpenter", "fit dump.yaml --like deploy/web --node-pools p.yaml",
         ("--node-pools: needs --autoscale karpenter",)),
    Case("groups without an autoscaler", "fit d.yaml --like deploy/web --node-groups g.yaml",
         ("--node-groups: needs --autoscale cluster-autoscaler",)),
    Case("missing file", "whatif none.yaml", ("none.yaml: cannot be read: No such file",)),
    Case("directory without files", "whatif .", (".: is a directory without a .yaml",)),
    Case("nothing on stdin", "whatif -", ("stdin: is empty\n",)),
    Case("blank stdin", "whatif -", ("stdin: is empty\n",), stdin=b" \n"),
    Case("comment on stdin", "whatif -", ("stdin: contains only",), stdin=b"# no\n"),
    Case("binary stdin", "whatif -", ("stdin: is not text",), stdin=b"\x7fELF\x02\x01\x00\x00"),
    Case("broken json", "whatif -", ("stdin: is not JSON",), stdin=b'{"kind": "List", '),
    Case("deep json", "whatif -", ("stdin: is nested too deeply",),
         stdin=b'{"a":' + b"[" * 9999 + b"]" * 9999 + b"}"),
    Case("NaN in json", "whatif -", ("stdin: is not JSON",), stdin=b'{"kind": NaN}'),
    Case("a folder as a scenario", "simulate .", (".: is a directory; expected a file",)),
    snapshot("binary file", b"\xff\xd8\xff\xe0\x00\x10JFIF", "is not text"),
    snapshot("yaml syntax error", NODE + "  bad: : indent\n", "is not YAML: line 5"),
    snapshot("tab in yaml", "kind:\n\tNode", "is not YAML: line 2"),
    snapshot("deep yaml", "a: " + "{a: " * 300 + "}" * 300, "nested more than 200 levels"),
    snapshot("alias bomb", BOMB, "aliases repeat more than"),
    snapshot("recursive alias", "a: &a [*a]", "the alias *a"),
    snapshot("NaN in yaml", NODE.replace('"4"', ".nan"), ".nan is not a number"),
    snapshot("python tag", "a: !!python/object/apply:os.system [x]", "is not supported"),
    snapshot("key twice", NODE + "kind: Node\n", "line 5: the key 'kind' is given twice"),
    # --- objects -------------------------------------------------------------------------------
    snapshot("empty list", "{apiVersion: v1, kind: List, items: []}", "contains no Node"),
    snapshot("no items", "{apiVersion: v1, kind: List, items: null}", "contains no Node"),
    snapshot("empty cluster", POD, "contains 1 Pod, but no Node; dump all kinds together: kubectl"),
    snapshot("no objects", "just text", "expected an object with apiVersion and kind, got text"),
    snapshot("number of things", "[1, 2]", "expected an object", "got a number"),
    snapshot("no kind", "{apiVersion: v1, metadata: {name: x}}", "x: kind: is required"),
    *(snapshot(f"the API version {version}", NODE.replace("v1", version, 1),
               f"Node n1: apiVersion: '{version}' is neither VERSION nor GROUP/VERSION")
      for version in ("v1/", "a/b/c")),
    snapshot("no name", "{apiVersion: v1, kind: Node}", "Node (unnamed): metadata.name: is requ"),
    snapshot("duplicate", documents(NODE, POD, POD), "Pod shop/web: metadata.name: appears twice"),
    snapshot("items of a wrong type", "{kind: List, items: 5}", "items: expected a list"),
    snapshot("items of a wrong type in a List in a List",
             "{kind: List, items: [{kind: WidgetList, items: 5}]}",
             "items[0].items: expected a list, got a number"),
    snapshot("a list in a list", "{apiVersion: v1, kind: List, items: [[1]]}",
             "items[0][0]: expected an object with apiVersion and kind, got a number"),
    snapshot("wrong type", documents(NODE, POD.replace("[", "").replace("]", "")),
             "Pod shop/web: spec.containers"),
    snapshot("name of a wrong type", NODE.replace("name: n1", "name: 7"), "Node 7: metadata.name"),
    snapshot("unparsable quantity", documents(NODE, POD.replace('"1"', "lots")),
             "Pod shop/web: spec.containers[0].resources.requests"),
    snapshot("negative quantity", documents(NODE, POD.replace('"1"', '"-1"')),
             "Pod shop/web: spec.containers[0].resources.requests", "-1"),
    snapshot("negative allocatable", NODE.replace("16Gi", "-16Gi"), "Node n1: status.allocatable"),
    snapshot("huge integer", NODE.replace('"4"', "9" * 999), "Node n1: status.allocatable.cpu"),
    snapshot("long integer", documents(NODE, POD.replace('"1"', "9" * 30)),
             "Pod shop/web: spec.containers[0].resources.requests.cpu: the integer 9999"),
    snapshot("huge priority", documents(NODE, specified(f"priority: {10**30}")),
             "Pod shop/web: spec.priority"),
    snapshot("bad timestamp", NODE.replace("status: {", "status: {startTime: noon, "),
             "Node n1: status.startTime: 'noon' is not an RFC 3339 timestamp"),
    snapshot("bad timestamp in a list",
             NODE.replace("status: {", "status: {x: [{type: a}, {lastProbeTime: noon}], "),
             "Node n1: status.x[1].lastProbeTime: 'noon' is not an RFC 3339"),
    snapshot("an item without a name", "{apiVersion: v1, kind: List, items: [" + ", ".join(
        f"{{apiVersion: v1, kind: Node{rest}}}" for rest in (", metadata: {name: a}", "")) + "]}",
        "items[1]: Node (unnamed): metadata.name: is required"),
    snapshot("bad selector", documents(NODE, BUDGET),
             "PodDisruptionBudget shop/b: spec.selector.matchExpressions[0].operator", "Near"),
    snapshot("two defaults", documents(NODE, DEFAULT_CLASS % ("a", 1), DEFAULT_CLASS % ("b", 2)),
             "PriorityClass", "is already marked as default"),
    snapshot("class too high", documents(NODE, CLASS % ("a", 2_000_000_000)),
             "PriorityClass a: value", "maximum allowed value"),
    snapshot("class of a wrong type", documents(NODE, CLASS % ("a", "high")),
             "PriorityClass a: value"),
    snapshot("absent class", documents(NODE, specified("priorityClassName: x")),
             "Pod shop/web", "no PriorityClass with name x was found"),
    *(snapshot(f"{kind} that reports {status}", documents(NODE, f"apiVersion: {group}\n"
             f"kind: {kind}\nmetadata: {{name: w, namespace: shop}}\nstatus: {status}\n"),
             f"{kind} shop/w: {field}: ")
      for kind, group, status, field in STATUSES),
    *(snapshot(name, documents(NODE.replace("name: n1,", "name: n1, uid: n1,"), value),
               f"{field}: Expected")
      for name, value, field in READ_BY_NOTES),
    snapshot("endless workload", documents(NODE, DEPLOYMENT.replace("s: 1", "s: 1e18")),
             "Deployment shop/web: spec.replicas"),
    snapshot("bad taint", NODE + "spec: {taints: [{key: a, effect: Nope}]}\n",
             "Node n1: ", "taints[0].effect", "Nope"),
    snapshot("an unknown condition status", NODE.replace(
        "status: {", "status: {conditions: [{type: Ready, status: Perhaps}], "),
             'Node n1: status.conditions[0].status: Unsupported value: "Perhaps"'),
    snapshot("an unknown phase", documents(NODE, POD + "status: {phase: Dancing}\n"),
             'Pod shop/web: status.phase: Unsupported value: "Dancing"'),
    snapshot("an autoscaler without room",
             documents(NODE, AUTOSCALER % "minReplicas: 9, maxReplicas: 3"),
             "HorizontalPodAutoscaler shop/h: spec.maxReplicas: Invalid value: 3", "minReplicas"),
    snapshot("an autoscaler without a maximum", documents(NODE, AUTOSCALER % "minReplicas: 9"),
             "HorizontalPodAutoscaler shop/h: spec.maxReplicas: Required value"),
    snapshot("a queue of lots", documents(NODE, QUEUE + "{capability: {cpu: lots}}\n"),
             "Queue q: spec.capability[cpu]: Invalid value"),
    snapshot("a queue with less than nothing",
             documents(NODE, QUEUE + "{capability: {cpu: '-5'}}\n"),
             "Queue q: spec.capability[cpu]: Invalid value", "greater than or equal to 0"),
    snapshot("a queue of negative weight", documents(NODE, QUEUE + "{weight: -3}\n"),
             "Queue q: spec.weight: Invalid value: -3: must be between 0 and 2147483647"),
    snapshot("a gang of fewer than no members", documents(NODE, GROUP + "{minMember: -1}\n"),
             "PodGroup shop/g: spec.minMember: Invalid value: -1: must be between 0"),
    snapshot("a gang of too many members", documents(NODE, GROUP + "{minMember: 2147483648}\n"),
             "PodGroup shop/g: spec.minMember: Invalid value: 2147483648: must be between 0"),
    snapshot("a guarantee of lots", documents(NODE, QUEUE + "{guarantee: {resource: {cpu: x}}}\n"),
             "Queue q: spec.guarantee.resource[cpu]: Invalid value"),
    snapshot("queues without a top", documents(
        NODE, *[QUEUE.replace("q}", f"q{n}}}") + f"{{parent: q{n + 1}}}\n" for n in range(1200)]),
        "Queue q0: spec.parent: has more than 100 queues above it"),
    snapshot("a group of lots", documents(NODE, GROUP + "{minResources: {memory: lots}}\n"),
             "PodGroup shop/g: spec.minResources[memory]: Invalid value"),
    snapshot("a group with a topology", documents(
        NODE, NATIVE_GROUP % "{schedulingPolicy: {basic: {}}, "
        "schedulingConstraints: {topology: [{key: rack}]}}"),
        "PodGroup shop/g: spec.schedulingConstraints: Forbidden: needs the feature gate Topology"),
    snapshot("a group with claims", documents(
        NODE, NATIVE_GROUP % "{schedulingPolicy: {basic: {}}, resourceClaims: [{name: a}]}"),
        "PodGroup shop/g: spec.resourceClaims: Forbidden: needs the feature gate DRAWorkload"),
    snapshot("a gang of none", documents(
        NODE, NATIVE_GROUP % "{schedulingPolicy: {gang: {minCount: 0}}}"),
        "PodGroup shop/g: spec.schedulingPolicy.gang.minCount: Required value"),
    snapshot("a workload without templates", documents(
        NODE, NATIVE_GROUP.replace("PodGroup", "Workload") % "{podGroupTemplates: []}"),
        "Workload shop/g: spec.podGroupTemplates: Required value"),
    snapshot("a group with a text for a reference", documents(
        NODE, NATIVE_GROUP % "{schedulingPolicy: {basic: {}}, podGroupTemplateRef: x}"),
        "PodGroup shop/g: spec: json: cannot unmarshal string", "PodGroupSpec.spec.podGroupTem"),
    snapshot("a template that is no object", documents(
        NODE, NATIVE_GROUP.replace("PodGroup", "Workload") % "{podGroupTemplates: [x]}"),
        "Workload shop/g: spec: json: cannot unmarshal string", "WorkloadSpec.spec.podGroupTem"),
    snapshot("a group above", documents(NODE, specified("schedulingGroup: {podGroupName: ../x}")),
             "Pod shop/web: spec.schedulingGroup.podGroupName: Invalid value"),
    snapshot("a lease of the far future", documents(
        NODE, LEASE + "spec: {renewTime: '9999-12-31T23:59:59.999999Z'}\n"),
        "Lease a/n1: spec.renewTime: '9999-12-31T23:59:59.999999Z' is later than 2250"),
    snapshot("a limit that is no object", documents(NODE, POD, RANGE + "{limits: [a]}\n"),
             "LimitRange shop/l: spec.limits[0]: Expected `object`, got `str`"),
    snapshot("defaults of a wrong type", documents(
        NODE, POD, RANGE + "{limits: [{type: Container, defaultRequest: 3}]}\n"),
        "LimitRange shop/l: spec.limits[0].defaultRequest: Expected `object`, got `int`"),
    snapshot("a limit of lots", documents(
        NODE, POD, RANGE + "{limits: [{type: Container, max: {cpu: lots}}]}\n"),
        "LimitRange shop/l: spec.limits[0].max[cpu]: Invalid value"),
    *(
        snapshot(f"null in a list of a {each.partition('kind: ')[2].split()[0]}",
                 documents(NODE, each), f"{field}[0]: Expected `object`, got `null`")
        for each, field in (
            (NODE.replace("n1", "n2") + "spec: {taints: [null]}\n", "Node n2: spec.taints"),
            (RANGE + "{limits: [null]}\n", "LimitRange shop/l: spec.limits"),
            (CORE + "Pod\nmetadata: {name: p, namespace: shop}\nspec: {containers: [null]}\n",
             "Pod shop/p: spec.containers"),
            (REGISTRATION + "ValidatingWebhookConfiguration\nmetadata: {name: w}\n"
             "webhooks: [null]\n", "ValidatingWebhookConfiguration w: webhooks"),
        )
    ),
    snapshot("a quota of less than nothing", documents(NODE, POD, QUOTA + "{hard: {pods: -1}}\n"),
             'ResourceQuota shop/q: spec.hard[pods]: Invalid value: "-1": must be greater than'),
    snapshot("a quota of half a pod", documents(NODE, POD, QUOTA + "{hard: {pods: '1.5'}}\n"),
             'ResourceQuota shop/q: spec.hard[pods]: Invalid value: "1500m": must be an integer'),
    *(
        snapshot(f"a volume on {name}", documents(NODE, VOLUME.replace(
            "spec: {", f"spec: {{nodeAffinity: {{required: {{nodeSelectorTerms: [{terms}]}}}}, "
        ) % "1Gi"), f"PersistentVolume v: spec.nodeAffinity.required.nodeSelectorTerms{field}")
        for name, terms, field in (
            ("no node", "", ": Required value"),
            ("nodes of an empty operator", "{matchExpressions: [{key: a, operator: ''}]}",
             "[0].matchExpressions[0].operator: Invalid value"),
            ("nodes without values", "{matchExpressions: [{key: a, operator: In}]}",
             "[0].matchExpressions[0].values: Required value"),
        )
    ),
    snapshot("a quota of a wrong type", documents(NODE, POD, QUOTA + "{hard: 3}\n"),
             "ResourceQuota shop/q: spec.hard: Expected `object`, got `int`"),
    snapshot("a quota of lots", documents(NODE, POD, QUOTA + "{hard: {cpu: lots}}\n"),
             "ResourceQuota shop/q: spec.hard[cpu]: Invalid value"),
    snapshot("a quota with a scope of a wrong type", documents(
        NODE, POD, QUOTA + "{scopeSelector: {matchExpressions: [3]}}\n"),
        "ResourceQuota shop/q: spec.scopeSelector.matchExpressions[0]: Expected `object`"),
    snapshot("a quota with an unknown operator", documents(NODE, POD, QUOTA +
        "{scopeSelector: {matchExpressions: [{scopeName: PriorityClass, operator: Is}]}}\n"),
        "ResourceQuota shop/q: spec.scopeSelector.matchExpressions[0].operator: Invalid"),
    snapshot("a volume with an unknown reclaim policy", documents(
        NODE, VOLUME.replace("spec: {", "spec: {persistentVolumeReclaimPolicy: Baz, ") % "1Gi"),
        'PersistentVolume v: spec.persistentVolumeReclaimPolicy: Unsupported value: "Baz"'),
    snapshot("a CronJob whose Jobs have an unknown completion mode", documents(
        NODE, "apiVersion: batch/v1\nkind: CronJob\nmetadata: {name: c}\nspec: {schedule: "
        "'* * * * *', jobTemplate: {spec: {completionMode: Bar, template: {spec: {containers: "
        "[{name: c}], restartPolicy: Never}}}}}\n"),
        'CronJob default/c: spec.jobTemplate.spec.completionMode: Unsupported value: "Bar"'),
    snapshot("a budget with a malformed time", documents(NODE, BUDGET.replace("Near", "In") +
        "status: {disruptedPods: {web: yesterday}}\n"),
        "PodDisruptionBudget shop/b: status.disruptedPods[web]: Invalid value", "RFC 3339"),
    snapshot("a namespace with a status of a wrong type", documents(
        NODE, CORE + "Namespace\nmetadata: {name: shop}\nstatus: gone\n"),
        "Namespace shop: status: Expected `object`, got `str`"),
    snapshot("a claim of lots", documents(NODE, CLAIM % "lots"),
             "PersistentVolumeClaim shop/c: spec.resources.requests[storage]: Invalid value"),
    *(snapshot(f"a storage class with a malformed {field}", documents(NODE, STORAGE_CLASS % text),
               f"StorageClass s: {field}: {problem}")
      for field, text, problem in (
          ("provisioner", 'provisioner: ""', "Required value"),
          ("allowedTopologies[0].matchLabelExpressions[0].values",
           "provisioner: p\nallowedTopologies: [{matchLabelExpressions: [{key: zone}]}]",
           "Required value"),
      )),
    snapshot("a volume of lots", documents(NODE, VOLUME % "lots"),
             "PersistentVolume v: spec.capacity[storage]: Invalid value"),
    snapshot("a YAML list that is cut off", "apiVersion: v1\nitems:\n- apiVersion: v1\n"
             "  kind: Node\n  metadata:\n    name: n1\n- apiVersion: v1\n  kind: Node\n",
             "is a list without a kind; the file may be cut off"),
    snapshot("an owner without a kind", documents(NODE, POD.replace(
        "namespace: shop", "namespace: shop, ownerReferences: [{name: web, uid: u}]")),
             "Pod shop/web: metadata.ownerReferences.kind: Invalid value"),
    snapshot("a claim template without a map", documents(NODE, (
        "apiVersion: apps/v1\nkind: StatefulSet\nmetadata: {name: db, namespace: shop}\n"
        "spec: {volumeClaimTemplates: [{metadata: {name: data}, spec: large}]}\n")),
             "StatefulSet shop/db: spec.volumeClaimTemplates[0].spec: Expected `object`"),
    snapshot("a claim template of an ephemeral volume without a map", documents(NODE, POD.replace(
        "spec: {", "spec: {volumes: [{name: t, ephemeral: {volumeClaimTemplate: {spec: a}}}], ")),
             "Pod shop/web: spec.volumes[0].ephemeral.volumeClaimTemplate.spec: Expected `object`"),
    snapshot("a negative size in the claim template of an ephemeral volume", documents(
        NODE, POD.replace("spec: {", "spec: {volumes: [{name: t, ephemeral: {volumeClaimTemplate: "
                          "{spec: {resources: {requests: {storage: -5}}}}}}], ")),
             "volumes[0].ephemeral.volumeClaimTemplate.spec.resources.requests[storage]: Invalid"),
    snapshot("a Job template without a map", documents(NODE, (
        "apiVersion: batch/v1\nkind: CronJob\nmetadata: {name: cj, namespace: shop}\n"
        "spec: {schedule: '* * * * *', jobTemplate: {spec: {template: often}}}\n")),
             "CronJob shop/cj: spec.jobTemplate.spec.template: Expected `object`"),
    snapshot("names of a custom kind without a map", documents(NODE, (
        "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\n"
        "metadata: {name: widgets.x.io}\nspec: {group: x.io, names: Widget}\n")),
             "CustomResourceDefinition widgets.x.io: spec.names: Expected `object`"),
    snapshot("labels of a wrong type", NODE.replace("{pool: old}", "1.5"),
             "Node n1: metadata.labels: Expected `object`, got `float`"),
    *(
        snapshot(f"{field} of a wrong type in a custom resource: {command}", documents(
            NODE, f"apiVersion: example.com/v1\nkind: Widget\nmetadata: {{name: w, {field}: 5}}\n"),
            f"Widget w: metadata.{field}: Expected `{kind}`, got `int`",
            arguments=f"whatif dump.yaml --{command} --no-report")
        for field, kind in (("annotations", "object"), ("finalizers", "array"))
        for command in ("apply change.yaml", "delete widget/w")
    ),
    snapshot("an autoscaler with an owner without a kind", documents(
        NODE, DEPLOYMENT, AUTOSCALER.replace(
            "shop}", "shop, ownerReferences: [{controller: true}]}") % "maxReplicas: 2"),
        "HorizontalPodAutoscaler shop/h: metadata.ownerReferences.kind",
        arguments="whatif dump.yaml --scale deploy/shop/web=2 --no-report"),
    *(
        Case(f"explain a new {kind} with the spec {spec}", "explain dump.yaml --apply new.yaml",
             ("new.yaml", f"{kind} shop/web: spec: Expected `object`, got `{name}`"), (
                 ("dump.yaml", NODE),
                 ("new.yaml", DEPLOYMENT.partition("spec:")[0].replace("Deployment", kind)
                  + f"spec: {spec}\n")))
        for kind in ("Deployment", "StatefulSet")
        for spec, name in (("x", "str"), ("[1]", "array"))
    ),
    *(
        Case(f"{command} a new {kind} that does not select its pods", f"{command} new.yaml",
             ("new.yaml", f"{kind} shop/web: spec.template.metadata.labels: Invalid value: ",
              "`selector` does not match template `labels`"), (
                 ("dump.yaml", NODE),
                 ("new.yaml", DEPLOYMENT.replace("Deployment", kind)
                  .replace("matchLabels: {app: web}", "matchLabels: {app: other}"))))
        for command in ("explain dump.yaml --apply", "fit dump.yaml --pod")
        for kind in ("Deployment", "StatefulSet", "ReplicaSet")
    ),
    *(
        Case(f"{command} a pod without containers", f"{command} dump.yaml --apply new.yaml",
             ("new.yaml: Pod shop/web: spec.containers: Required value",), (
                 ("dump.yaml", NODE), ("new.yaml", POD.partition("[")[0] + "[]}\n")))
        for command in ("explain", "whatif")
    ),
    *(
        Case(f"{command} a pod with a null in the list of containers",
             f"{command} dump.yaml --apply new.yaml",
             ("new.yaml: Pod shop/web: spec.containers[0]: Expected `object`, got `null`",), (
                 ("dump.yaml", NODE), ("new.yaml", POD.replace("[", "[null, ", 1))))
        for command in ("explain", "whatif")
    ),
    *(
        Case(f"{command} a new CronJob with the {step} {value}", f"{command} new.yaml",
             ("new.yaml", f"CronJob shop/cj: spec.jobTemplate.{says}"), (
                 ("dump.yaml", NODE),
                 ("new.yaml", CRON_JOB % value)))
        for command in ("explain dump.yaml --apply", "fit dump.yaml --pod")
        for step, value, says in (
            ("spec", "5", "spec: json: cannot unmarshal number into Go struct field"),
            ("template", "{template: {spec: 5}}", "spec.template.spec: "),
            ("template", "{template: {spec: {containers: 5}}}", "spec.template.spec.containers: "),
        )
    ),
    *(
        snapshot(f"an autoscaler with a malformed {field}: {arguments}", documents(
            NODE, DEPLOYMENT, AUTOSCALER.replace("name: web", "name: web, apiVersion: true")
            % "maxReplicas: 2" if field == "reference" else AUTOSCALER % "metrics: [3]"),
            f"HorizontalPodAutoscaler shop/h: spec.{path}: Expected", arguments=arguments)
        for field, path in (("reference", "scaleTargetRef.apiVersion"), ("metric", "metrics[0]"))
        for arguments in (
            "whatif dump.yaml --scale deploy/shop/web=2", "fit dump.yaml --like deploy/shop/web")
    ),
    snapshot("a malformed node for Karpenter", documents(
        NODE.replace("status: {", "status: {conditions: [3], "), NODE_POOL),
        "Node n1: status.conditions[0]: Expected `object`",
        arguments="whatif dump.yaml --autoscale karpenter"),
    snapshot("a malformed node for Cluster Autoscaler", documents(
        NODE.replace("pool: old", "eks.amazonaws.com/nodegroup: g").replace(
            "status: {", "status: {capacity: 3, ")),
        "Node n1: status.capacity: Expected `object`, got `int`",
        arguments="whatif dump.yaml --autoscale cluster-autoscaler"),
    snapshot("a node of lots for Karpenter", documents(NODE.replace('"4"', "lots"), NODE_POOL),
             "Node n1: status.allocatable.cpu: Invalid value",
             arguments="whatif dump.yaml --autoscale karpenter"),
    snapshot("a malformed requirement to anonymise", documents(
        NODE, specified(REQUIREMENT)),
        "Pod shop/web: spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution."
        "nodeSelectorTerms[0].matchExpressions[0].values[0]: Expected `str`, got `int`",
        arguments="snapshot out.json --from dump.yaml --anonymise k.key"),
    # --- changes -------------------------------------------------------------------------------
    change("set resources in a malformed spec", "--set-resources deploy/shop/web=cpu=1",
           "dump.yaml: Deployment shop/web: spec: Expected `object`",
           cluster=documents(NODE, DEPLOYMENT.partition("spec:")[0] + "spec: 3\n")),
    change("scale a malformed workload", "--scale deploy/shop/web=2",
           "dump.yaml: Deployment shop/web: spec: Expected `object`",
           cluster=documents(NODE, DEPLOYMENT.partition("spec:")[0] + "spec: 3\n")),
    change("set resources in a malformed template", "--set-resources deploy/shop/web=cpu=1",
           "dump.yaml: Deployment shop/web: spec.template.spec.containers[0].resources",
           cluster=documents(NODE, DEPLOYMENT.replace('{requests: {cpu: "1"}}', "3"))),
    change("set a field of an item with a long number",
           f"--set deploy/shop/web:spec.template.spec.containers[{'9' * 5000}].image=i",
           "Deployment shop/web: spec.template.spec.containers[9999"),
    change("apply a pod that is bound to a missing node", "--apply change.yaml",
           "change.yaml: Pod shop/new: spec.nodeName: there is no Node n7",
           content=POD.replace("name: web", "name: new").replace("{cont", "{nodeName: n7, cont")),
    change("apply a template that is bound to a missing node", "--apply change.yaml",
           "change.yaml: Deployment shop/web: spec.template.spec.nodeName: there is no Node n7",
           content=DEPLOYMENT.replace("{cont", "{nodeName: n7, cont")),
    change("scale a deleted workload", "--scale deploy/shop/web=3 --delete deploy/shop/web",
           "--scale: there is no Deployment shop/web; it is deleted first"),
    change("drain a deleted node", "--drain n1 --delete node/n1",
           "--drain: there is no Node n1; it is deleted first"),
    change("apply nothing there", "--apply none.yaml", "none.yaml: cannot be read"),
    change("apply rubbish", "--apply change.yaml", "change.yaml: is not YAML", content="a: b: c"),
    change("apply a misspelt kind", "--apply change.yaml",
           "change.yaml: Podd shop/web: kind: v1 has no kind Podd; did you mean Pod?",
           content=POD.replace("Pod", "Podd")),
    change("apply a kind in lower case", "--apply change.yaml",
           "change.yaml: pod shop/web: kind: v1 has no kind pod; did you mean Pod?",
           content=POD.replace("Pod", "pod")),
    change("apply a kind that is off by default", "--apply change.yaml",
           "kind: certificates.k8s.io/v1beta1 has no kind PodCertificateRequest that Kubernetes "
           "serves by default",
           content=POD.replace("v1", "certificates.k8s.io/v1beta1", 1)
           .replace("Pod", "PodCertificateRequest", 1)),
    change("a misspelt kind in a snapshot", "--drain n1",
           "dump.yaml: Deploymnt shop/web: kind: apps/v1 has no kind Deploymnt; did you mean "
           "Deployment?",
           cluster=documents(NODE, DEPLOYMENT.replace("Deployment", "Deploymnt"))),
    change("a snapshot in place of a configuration", "--config dump.yaml",
           "dump.yaml: contains 4 documents; expected one KubeSchedulerConfiguration"),
    change("a taint without an effect", "--drain n1",
           'dump.yaml: Node n1: spec.taints[0].effect: Unsupported value: "Never"',
           cluster=NODE + "spec: {taints: [{key: a, effect: Never}]}\n"),
    change("apply a misspelt field", "--apply change.yaml",
           "change.yaml: Deployment shop/web: spec.replcas: unknown field; did you mean replicas?",
           content=DEPLOYMENT.replace("replicas", "replcas")),
    change("apply a misspelt field of a container", "--server-side --apply change.yaml",
           "Pod shop/web: spec.containers[0].resources.request: unknown field; did you mean "
           "requests?", content=POD.replace("requests", "request")),
    change("apply a number as the value of a variable", "--apply change.yaml",
           "change.yaml: Pod shop/web: spec.containers[0].env[0].value: json: cannot unmarshal "
           "number into Go struct field EnvVar.spec.containers.env.value of type string",
           content=POD.replace("image: i,", "image: i, env: [{name: A, value: 5}],")),
    change("apply a malformed object that is not simulated", "--apply change.yaml",
           "change.yaml: ConfigMap shop/c: data.a: json: cannot unmarshal number",
           content="{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: shop}, "
                   "data: {a: 5}}"),
    change("set a number that does not fit into 32 bits",
           f"--set deploy/shop/web:spec.revisionHistoryLimit={2**31}",
           "--set: Deployment shop/web: spec.revisionHistoryLimit: json: cannot unmarshal number"),
    change("apply a misplaced field", "--apply change.yaml",
           "change.yaml: Pod shop/web: replicas: unknown field", content=POD + "replicas: 2\n"),
    change("apply a pod of an absent class", "--apply change.yaml",
           "change.yaml: Pod shop/new: spec.priorityClassName: no PriorityClass with name x",
           content=specified("priorityClassName: x").replace("web", "new")),
    change("apply a workload of an absent class", "--apply change.yaml",
           "change.yaml: Deployment shop/new: spec.template.spec.priorityClassName",
           content=DEPLOYMENT.replace("name: web,", "name: new,").replace(
               "spec: {cont", "spec: {priorityClassName: x, cont")),
    change("apply a second default", "--apply change.yaml",
           "change.yaml: PriorityClass b: ", "a is already marked as default",
           content=DEFAULT_CLASS % ("b", 2), cluster=documents(NODE, DEFAULT_CLASS % ("a", 1))),
    change("apply a negative quantity", "--apply change.yaml",
           "change.yaml: Pod shop/new: spec.containers[0].resources.requests",
           content=POD.replace("web", "new").replace('"1"', "-1")),
    change("apply a badly named pod", "--apply change.yaml",
           "change.yaml: Pod shop/New_: metadata.name",
           content="{apiVersion: v1, kind: Pod, metadata: {name: New_, namespace: shop}}"),
    change("scale without a number", "--scale deploy/shop/web", "--scale: 'deploy/shop/web' is"),
    change("scale to a word", "--scale deploy/shop/web=many",
           "--scale: Deployment shop/web: 'many' is not a number"),
    change("scale below zero", "--scale deploy/shop/web=-1",
           "--scale: Deployment shop/web: '-1' is not a number"),
    change("scale beyond reason", f"--scale deploy/shop/web={10**40}", "are more than 1000000"),
    change("scale an ambiguous name", "--scale deploy/web=2",
           "--scale: deploy/web is in several namespaces (other, shop); name one of them"),
    change("scale a pod", "--scale pod/shop/web=2", "--scale: a Pod cannot be scaled"),
    change("scale without a kind", "--scale shop/web=2",
           "--scale: unknown kind 'shop'; did you mean deployment/shop/web?"),
    change("scale an unknown kind", "--scale cow/web=2",
           "known: deployment, replicaset, replicationcontroller, statefulset"),
    change("add nodes like nothing", "--add-nodes 2", "--add-nodes: needs --like NODE, or"),
    change("copy a node no time", "--add-nodes 2 --like n1:0,n1",
           "--like: 'n1:0' is neither a node nor NODE:N with N from 1 to 100000"),
    change("copy a node too often", "--add-nodes 2 --like n1,n1:100000",
           "--like: with 'n1:100000', one turn has 100001 copies, more than 100000"),
    change("copy a node without a name", "--add-nodes 2 --like :3",
           "--like: ':3' is neither a node nor NODE:N with N from 1 to 100000"),
    change("add half a node", "--add-nodes 0.5 --like n1", "--add-nodes"),
    change("delete by a label of nobody", "--delete node/pool=x", "--delete: no Node matches pool"),
    change("set an unknown field", "--set pod/shop/web:spec.replicas=2",
           "--set: Pod shop/web: spec.replicas: there is no such field"),
    *(change(f"set {what}", f"--set {text}", f"fairlead: --set: {says}")
      for what, text, says in (
          ("a kubelet of no behaviour", "node/n1:metadata.annotations[fairlead.dev/kubelet]=asleep",
           "Node n1: metadata.annotations[fairlead.dev/kubelet]: 'asleep' is not a kubelet"),
          ("a time of creation", "node/n1:metadata.creationTimestamp=noon",
           "Node n1: metadata.creationTimestamp: cannot be changed"),
          ("too many replicas", "deploy/shop/web:spec.replicas=99999999",
           "Deployment shop/web: spec.replicas: 99999999 is more than 1000000"),
      )),
    change("set a field twice",
           "--set deploy/shop/web:spec.replicas=2 --set deployment/shop/web:spec.replicas=3",
           "--set: Deployment shop/web: spec.replicas: is given twice"),
    change("set an image by number and by name", f"--set {IN_WEB}[0].image=a:1 "
           f"--set {IN_WEB}[c].image=a:2", "containers[c].image: is given twice"),
    change("set a field and then its parent", f"--set {IN_WEB}[c].resources.requests.cpu=1 "
           f"--set {IN_WEB}[c].resources={{}}", "containers[c].resources: replaces the value given",
           "for spec.template.spec.containers[c].resources.requests.cpu"),
    change("set resources twice", "--set-resources deploy/shop/web=cpu=1 "
           "--set-resources deploy/shop/web:c=cpu=2",
           "--set-resources: Deployment shop/web: requests.cpu: is given twice"),
    change("set a request by two options", f"--set {IN_WEB}[c].resources.requests.cpu=1 "
           "--set-resources deploy/shop/web=cpu=2",
           "--set-resources: Deployment shop/web: requests.cpu: is given twice"),
    change("set a request by two names", "--set-resources deploy/shop/web=cpu=1,requests.cpu=2",
           "--set-resources: Deployment shop/web: requests.cpu: is given twice"),
    change("set a field that is immutable", "--set deploy/shop/web:spec.selector.matchLabels.app=x",
           "--set: Deployment shop/web: spec.selector: Invalid value: "
           '{"matchLabels":{"app":"x"}}: field is immutable'),
    change("set a field that no simulation uses",
           "--set deploy/shop/web:spec.template.spec.dnsPolicy=Foo",
           '--set: Deployment shop/web: spec.template.spec.dnsPolicy: Unsupported value: "Foo": '),
    change("no recommendation", "--apply-vpa", "--apply-vpa: the dump has no Vertical"),
    change("a load of nothing", "--cordon n1 --load dump.yaml", "dump.yaml: "),
    change("no resources", "--set-resources deploy/shop/web=much", "'much' is not RESOURCE=AMOUNT"),
    *(change(f"a resource twice in {amounts}", f"--set-resources deploy/shop/web={amounts}",
             f"--set-resources: Deployment shop/web: {name}: is given twice")
      for amounts, name in (("cpu=1,cpu=2", "cpu"), ("limits.cpu=1,limits.cpu=2", "limits.cpu"))),
    change("a new plugin of no module", "--new-plugin nowhere:P",
           "--new-plugin: nowhere:P: there is no module nowhere"),
    change("a new plugin twice", "--plugin p.py:P --new-plugin p.py:P",
           "--new-plugin: p.py:P: plugin 'P' is given twice", more=(("p.py", PLUGIN),)),
    change("a new configuration that is not stored", "--new-config cm/x",
           "--new-config: there is no KubeSchedulerConfiguration in cm/x"),
    change("a new node like one with malformed devices", "--add-nodes 1 --like n1",
           "dump.yaml: ResourceSlice s: spec: Expected `object`, got `str`",
           cluster=documents(NODE, SLICE + "spec: none\n")),
    change("an unknown class", "--priority-class high=9", "there is no PriorityClass high"),
    change("a flag of kubectl alone", "--drain n1 --force", "--force: needs --drain-as-kubectl"),
    change("no seeds", "--seeds 0", "--seeds: 0 is not from 1 to 1000"),
    change("a startup of no length", "--startup-time soon", "--startup-time: 'soon' is not a dur"),
    change("stages that are none", "--kwok-stages dump.yaml", "dump.yaml: Node n1: is not a KWOK"),
    change("no stages", "--kwok-stages change.yaml", "change.yaml: contains no KWOK Stage",
           content="{apiVersion: v1, kind: List, items: []}"),
    change("stages of a later version", "--kwok-stages change.yaml",
           "change.yaml: Stage s: apiVersion: must be kwok.x-k8s.io/v1alpha1",
           content="{apiVersion: kwok.x-k8s.io/v1beta1, kind: Stage, metadata: {name: s}}"),
    change("an alternative without a name", "--change --cordon", "--change"),
    change("an empty list to apply", "--apply change.yaml", "change.yaml: contains no object",
           content="{apiVersion: v1, kind: List, items: []}"),
    change("an alternative without an option", "--change b:n2",
           "--change: b: 'n2' is one argument too many; is its option missing?"),
    change("an unknown node of an alternative", "--change b:--drain=n7",
           "--change: b: --drain: there is no Node n7"),
    change("an alternative without its file", "--change a:--drain=n1 --change b:--apply=no.yaml",
           "--change: b: no.yaml: "),
    change("a bad configuration of all alternatives", "--change b:--drain=n1 --config no.yaml",
           "fairlead: no.yaml: "),
    change("the commands of alternatives", "--change b:--cordon=n1 --commands c.jsonl",
           "--commands: cannot be combined with --change"),
    change("a report of alternatives that cannot be written",
           "--change b:--cordon=n1 --report no/r.html", "--report: there is no directory no"),
    plan("explain without an object", "explain dump.yaml",
         "arguments: name an object, too, for example: fairlead explain dump.yaml pods"),
    plan("explain two dumps", "explain dump.yaml pod/shop/web --snapshot dump.yaml",
         "dump.yaml: is one argument too many: --snapshot is given already"),
    plan("explain a dump and a cluster", "explain dump.yaml pod/shop/web --context a",
         "arguments: name either a dump (SNAPSHOT) or a cluster, not both"),
    plan("explain two objects", "explain pod/shop/web pod/shop/new --snapshot dump.yaml",
         "pod/shop/new: is one argument too many: the command explains one object"),
    plan("explain what is not explained", "explain dump.yaml secret/x", "there is no Secret x"),
    plan("explain another namespace", "explain dump.yaml pod/shop/web -n other",
         "explain: pod/shop/web: shop is not the namespace of --namespace (other)"),
    plan("explain a pod of an absent namespace", "explain dump.yaml pod/web -n other",
         "explain: there is no Pod other/web"),
    plan("explain an absent namespace", "explain dump.yaml pods -n sho",
         "--namespace: there is no namespace sho; did you mean shop?"),
    plan("explain nodes of a namespace", "explain dump.yaml nodes -n shop",
         "--namespace: has no effect on nodes"),
    plan("explain a file of another namespace", "explain dump.yaml --apply p.yaml -n other",
         "p.yaml: Pod shop/new: metadata.namespace: shop is not the namespace of --namespace",
         files=(("p.yaml", OTHER_POD),)),
    plan("explain a pod with a misspelt field", "explain dump.yaml --apply p.yaml",
         "p.yaml: Pod shop/web: spec.containrs: unknown field; did you mean containers?",
         files=(("p.yaml", POD.replace("containers", "containrs")),)),
    plan("explain too many pods", "explain dump.yaml --apply p.yaml",
         "p.yaml: Deployment shop/web: spec.replicas: 99999999 is more than 1000000",
         files=(("p.yaml", DEPLOYMENT.replace("replicas: 1", "replicas: 99999999")),)),
    plan("explain a file without pods", "explain dump.yaml --apply n.yaml",
         "n.yaml: contains no Pod and no workload", files=(("n.yaml", NODE),)),
    plan("explain a stored configuration", "explain dump.yaml pod/shop/web --config cm/x",
         "--config: there is no KubeSchedulerConfiguration in cm/x"),
    change("drain an unknown node", "--drain n7", "--drain: there is no Node n7; known: n1"),
    change("drain by a selector of nobody", "--drain pool=new", "--drain: no node matches pool="),
    change("cordon by a bad selector", "--cordon pool=(", "--cordon: 'pool=(' is neither a node"),
    change("delete an unknown kind", "--delete widgit/x", "--delete: unknown kind 'widgit'"),
    change("delete nobody", "--delete pod/none", "--delete: there is no Pod none"),
    change("delete a namespace of the system", "--delete ns/kube-system", "--delete: ",
           "the Namespace kube-system cannot be deleted",
           cluster=documents(NODE,
                             "{apiVersion: v1, kind: Namespace, metadata: {name: kube-system}}\n")),
    change("delete a system class", "--delete pc/system-node-critical",
           "--delete: there is no PriorityClass system-node-critical"),
    change("fail an unknown zone", "--fail-zone b",
           "--fail-zone: there is no zone b; known: zone-a, zone-b", cluster=ZONED),
    change("fail a zone of none", "--fail-zone a",
           "--fail-zone: there is no zone a; the nodes have no zones (label topology"),
    change("apply a malformed amount where a LimitRange applies", "--apply change.yaml",
           "Pod shop/new: spec.containers[0].resources.requests.cpu: quantities must match",
           content=OTHER_POD.replace('cpu: "1"', "cpu: NaN"),
           cluster=documents(NODE, RANGE + "{limits: [{type: Container, max: {cpu: 2}}]}\n")),
    change("a slice of no node before Karpenter", "--cordon n1 --autoscale karpenter",
           "dump.yaml: ResourceSlice s: spec.nodeName: Expected `str`, got `object`",
           cluster=documents(NODE.replace("pool: old", "node.kubernetes.io/instance-type: m"),
                             NODE_POOL, SLICE + "spec: {driver: d, nodeName: {a: b}}\n")),
    change("fail a zone of two regions", "--fail-zone z",
           "--fail-zone: z is in several regions; say which: east/z, west/z", cluster=REGIONAL),
    change("fail an unknown node", "--fail-node n7", "--fail-node: there is no Node n7; known: n1"),
    change("fail nobody", "--fail-fraction 0", "--fail-fraction: '0' is not a fraction above 0"),
    change("fail more than all", "--fail-fraction 101%", "--fail-fraction: '101%' is not a frac"),
    change("fail a share of nowhere", "--fail-fraction 0.5@b", "there is no zone b"),
    change("fail a share of no zone", "--fail-fraction 60%@", "the name of the zone is missing; "),
    change("flap without times", "--flap n1@", "--flap: '' is not DOWN/UP, such as 60s/120s"),
    *(plan(f"a second dump that is too large, {what}",
           f"whatif dump.yaml --against-snapshot large.yaml --max-input 4Ki {option}",
           "large.yaml: has more than 4,096 bytes", files=(("large.yaml", "#" * 5000),))
      for what, option in (("with a change", "--cordon n1"), ("without a change", ""))),
    change("a thousandth of a byte", "--max-input 1m", "'1m' is not a whole number of bytes; 1Mi"),
    change("fail no number", "--fail-fraction nan", "--fail-fraction: 'nan' is not a fract"),
    change("flap without an up", "--flap n1@60s", "--flap: '60s' is not DOWN/UP"),
    change("flap without end", "--flap n1@1ns/1ns", "--flap: '1ns' is shorter than 1s"),
    change("an unset variable", "--fail-node n1 --for=", "--for: is empty"),
    change("a rate beyond floats", "--node-eviction-rate 1e39", ": '1e39' is not a number"),
    change("flap with two periods", "--flap n1@1m/2m --flap n1@2m/4m",
           "--flap: n1@2m/4m: Node n1 already fails in another way, with --flap n1@1m/2m"),
    change("fail and flap", "--fail-node pool=old --flap n1",
           "--flap: n1: Node n1 already fails in another way, with --fail-node pool=old"),
    change("flap a stranger", "--flap n9@60s/60s", "--flap: there is no Node n9; known: n1"),
    change("fail in no way", "--fail-node n1 --how sideways",
           "--how: 'sideways' is not a kubelet behaviour"),
    change("fail as usual", "--fail-node n1 --how running", "--how: 'running' is the default"),
    change("fail by being ready", "--fail-node n1 --how ready", "--how: 'ready' is not a failure"),
    change("fail for no time", "--fail-node n1 --for 0s", "--for: an outage of length 0 has"),
    change(
        "fail for a while", "--fail-node n1 --for a-while", "--for: 'a-while' is not a duration"
    ),
    change("an instant of nothing", "--cordon n1 --at 5m", "--at: needs --fail-zone"),
    change("a manner of nothing", "--flap n1 --how paused", "--how: needs --fail-zone"),
    change("a bad time of nothing", "--drain n1 --for 5min", "--for: '5min' is not a duration"),
    change("a time of nothing", "--drain n1 --for 5m",
           "--max-unavailable (--max-unavailable 1 drains one node at a time)"),
    change("turns of nobody", "--max-unavailable 1", "--max-unavailable: needs --drain"),
    change("no turns", "--drain n1 --max-unavailable 0", "--max-unavailable: 0 is not from 1 to"),
    change("half a turn", "--drain n1 --max-unavailable 0.5", "max-unavailable"),
    change("bad rate", "--node-eviction-rate fast", "--node-eviction-rate: 'fast' is not a number"),
    change("bad grace", "--node-monitor-grace-period=-4s", "--node-monitor-grace-period: -4s is "),
    change("a flag of the past", "--pod-eviction-timeout 5m",
           "--pod-eviction-timeout: Kubernetes 1.36 no longer has this flag"),
    change("an unknown gate", "--feature-gates X=true --behave-like 1.16",
           "--feature-gates: X: Fairlead has no such gate for Kubernetes 1.16; known: "),
    change("an unknown version", "--behave-like 1.17",
           "--behave-like: unknown version '1.17'; known: 1.16, 1.19, 1.21, 1.36"),
    change("bad condition", "--fail-on importance>1", "--fail-on: unknown field 'importance'"),
    change("a gate without a change", "--fail-on priority>=1000",
           "--fail-on: No change requested, so this condition could never match"),
    change("a gate with a namespace only", "-n shop --fail-on name=web", "--fail-on: No change"),
    change("bad horizon", "--horizon soon", "--horizon: 'soon' is not a duration"),
    change("bad seed", "--seed x", "seed"),
    change("half a seed", "--seed 1.5", "seed"),
    change("unknown option", "--drian n1", "--drian"),
    change("unknown format", "-o xml", "xml"),
    change("report nowhere", "--report none/r.html", "--report: there is no directory none"),
    # --- scheduler configurations --------------------------------------------------------------
    config("another kind", NODE, "apiVersion: must be one of kubescheduler.config.k8s.io/v1,"),
    config("unknown field", CONFIG + "profile: []", "profile: unknown field; did you mean prof"),
    config("sampling beyond all", CONFIG + "percentageOfNodesToScore: 107", "percentageOfNodesTo"),
    config("unknown plugin", CONFIG + "profiles: [{plugins: {score: {enabled: [{name: Best}]}}}]",
           "profiles[0].plugins.score.enabled[0].name: no plugin 'Best'"),
    # --- configurations for whole jobs -----------------------------------------------------------
    jobs("an action of nobody", "actions: explode", "actions: no action 'explode'; known: "),
    jobs("a plugin of nobody", "tiers: [{plugins: [{name: x}]}]", "tiers[0].plugins: no plugin"),
    jobs("a weight beyond reason",
         "tiers: [{plugins: [{name: nodeorder, arguments: {leastrequested.weight: 9999999999}}]}]",
         "tiers[0].plugins[0].arguments.leastrequested.weight: 9999999999 does not fit 32 bits"),
    # --- scenarios -----------------------------------------------------------------------------
    scenario("scenario of a wrong type", "[]", "s.yaml: expected object, got array"),
    scenario("no cluster", "seed: 1", "s.yaml: line 1: cluster: is required"),
    scenario("no node", "cluster: {generated: {nodes: 0}}", "s.yaml: line 1: cluster: has no node"),
    scenario("a Job whose template has a text for a spec",
             "cluster: {generated: {nodes: 1}}\nevents: [{at: 1s, create: {apiVersion: batch/v1, "
             "kind: Job, metadata: {name: a, namespace: b}, spec: {template: {spec: x}}}}]",
             "s.yaml: events[0].create: Job b/a: spec.template.spec: Invalid value"),
    scenario("unknown scenario field", SCENARIO + "sede: 1",
             "s.yaml: line 2: sede: unknown field; did you mean seed? known: cluster, duration, "),
    scenario("unknown nested field", SCENARIO + "events: [{at: 1m, drian: node-0}]",
             "s.yaml: line 2: events[0].drian: unknown field; did you mean drain?"),
    scenario("a load of no workload", SCENARIO + "load: [{workload: deploy/web, cpu: 1}]",
             "s.yaml: line 2: load[0].workload: there is no Deployment web"),
    scenario("a load of the wrong form",
             SCENARIO + "load:\n- workload: deploy/web\n  cpu: {hourly: 3}",
             "s.yaml: line 4: load[0].cpu.hourly: unknown field"),
    scenario("an unknown autoscaler", SCENARIO + "settings:\n  autoscale: karpentr",
             "s.yaml: line 3: settings.autoscale"),
    scenario("zones without end", "cluster: {generated: {nodes: 2, zones: 9223372036854775807}}\n",
             "s.yaml: line 1: cluster.generated.zones: 9223372036854775807 zones are more than"),
    scenario("bad duration", SCENARIO + "duration: 5 parsecs",
             "s.yaml: line 2: duration: '5 parsecs'"),
    scenario("negative instant", SCENARIO + "events: [{at: -1m, drain: node-0}]",
             "s.yaml: line 2: events[0].at: -1m is negative"),
    scenario("a snapshot in place of a scenario", documents(NODE, POD),
             "s.yaml: contains 2 documents; expected one scenario"),
    scenario("unknown node", SCENARIO + "events: [{at: 1m, drain: node-9}]",
             "s.yaml: line 2: events[0].drain: there is no Node node-9"),
    scenario("two verbs", SCENARIO + "events: [{at: 1m, drain: node-0, cordon: node-1}]",
             "s.yaml: line 2: events[0]: has cordon and drain"),
    scenario("a failing zone without a name", SCENARIO + "events: [{at: 1m, fail-zone: zone-a}]",
             "s.yaml: line 2: events[0].fail-zone: there is no zone zone-a; the nodes have no zo"),
    scenario("turns of a cordon", SCENARIO + "events: [{at: 1m, cordon: node-0, for: 5m}]",
             "s.yaml: line 2: events[0].for: is only allowed with fail-zone, fail-node, "),
    scenario("a time of a drain", SCENARIO + "events: [{at: 1m, drain: node-0, for: 5m}]",
             "s.yaml: line 2: events[0].for: needs max-unavailable if used with drain"),
    scenario("no turn", SCENARIO + "events: [{at: 1m, drain: node-0, max-unavailable: 0}]",
             "s.yaml: line 2: events[0].max-unavailable: 0 is not from 1 to"),
    scenario("no part", SCENARIO + "events: [{at: 1m, drain: node-0, max-unavailable: a%}]",
             "s.yaml: line 2: events[0].max-unavailable: 'a%' is neither an integer nor a percent"),
    scenario("a manner unheard of", SCENARIO + "events: [{at: 1, fail-node: node-0, how: badly}]",
             "s.yaml: line 2: events[0].how: 'badly' is not a kubelet behaviour"),
    scenario("a kubelet steered nowhere", SCENARIO + "events: [{at: 1, patch: {target: node/node-0"
             ", merge: {metadata: {annotations: {fairlead.dev/kubelet: asleep}}}}}]",
             "s.yaml: events[0].patch.merge: Node node-0: "
             "metadata.annotations[fairlead.dev/kubelet]: 'asleep' "),
    scenario("no instance types after a comma", SCENARIO + "settings: {autoscale: "
             "karpenter, node-pools: p.yaml, instance-types: 't.csv,'}\n",
             "settings.instance-types: 't.csv,' has no file before or after a comma",
             files=(("p.yaml", NODE_POOL),)),
    *(scenario(f"a patch of {what}", SCENARIO + "objects:\n- " + DEPLOYMENT.replace("\n", "\n  ")
               + f"\nevents: [{{at: 1, patch: {{target: deploy/web, merge: {merge}}}}}]", says)
      for what, merge, says in (
          ("an identity", "{kind: Pod}", "events[0].patch.merge.kind: cannot be changed"),
          ("no metadata", "{metadata: null}", "patch.merge.metadata.name: cannot be changed"),
          ("a time", "{metadata: {creationTimestamp: noon}}", "creationTimestamp: cannot be chang"),
          ("a misspelt field", "{spec: {replcas: 2}}",
           "Deployment shop/web: spec.replcas: unknown field; did you mean replicas?"),
          ("too many pods", "{spec: {replicas: 99999999}}", "spec.replicas: 99999999 is more than"),
          ("a load of no amount", "{metadata: {annotations: {fairlead.dev/load: lots}}}",
           "metadata.annotations[fairlead.dev/load]: 'lots' is not of the form"),
      )),
    snapshot("a kubelet of no behaviour",
             NODE.replace("labels:", "annotations: {fairlead.dev/kubelet: asleep}, labels:"),
             "Node n1: metadata.annotations[fairlead.dev/kubelet]: 'asleep' is not a kubelet"),
    snapshot("a pod of no duration", documents(NODE, POD.replace(
        "namespace: shop", "namespace: shop, annotations: {fairlead.dev/run-duration: 10m5}")),
        "Pod shop/web: metadata.annotations[fairlead.dev/run-duration]: '10m5' is not a duration"),
    snapshot("a pod of no usage", documents(NODE, POD.replace(
        "namespace: shop", "namespace: shop, annotations: {fairlead.dev/usage: memory=lots}")),
        "Pod shop/web: metadata.annotations[fairlead.dev/usage]: "),
    snapshot("a template of no duration", documents(NODE, DEPLOYMENT.replace(
        "metadata: {labels", "metadata: {annotations: {fairlead.dev/stop-duration: -1s}, labels")),
        "spec.template.metadata.annotations[fairlead.dev/stop-duration]: '-1s' is negative"),
    scenario("unknown flag", SCENARIO + "settings: {controller-manager: {flags: {qps: 1}}}",
             "s.yaml: line 2: settings.controller-manager.flags.qps: is not one of node-mon"),
    scenario("unknown version", SCENARIO + "settings: {controller-manager: {version: 1.2}}",
             "s.yaml: line 2: settings.controller-manager.version: unknown version '1.2'"),
    scenario("bad object", SCENARIO + "objects: [{kind: Pod}]", "s.yaml: (unnamed): apiVersion"),
    scenario("refused when its time comes", SCENARIO + "events: [{at: 1m, create: " + json.dumps(
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "UPPER"},
         "spec": {"containers": [{"name": "c", "image": "i"}]}}) + "}]",
        "s.yaml: events[0].create: Pod default/UPPER: metadata.name"),
    scenario("missing trace", "cluster: {trace: {nodes: n.csv}}", "n.csv: cannot be read"),
    scenario("trace without header", "cluster: {trace: {nodes: n.csv}}",
             "n.csv: line 1: the header must be",
             files=(("n.csv", "a,b\n1,2\n"),)),
    scenario("negative count in a trace", "cluster: {trace: {nodes: n.csv}}",
             "n.csv: line 2: nodes: '-1' is not an integer",
             files=(("n.csv", "nodes,cpu_milli,memory_mib,gpu,model\n-1,1,1,0,\n"),)),
    scenario("outputs nowhere", SCENARIO + "outputs: {json: none/x.json}",
             "s.yaml: outputs.json: there is no directory none"),
    scenario("outputs elsewhere", SCENARIO + "outputs: {json: /tmp/x.json}",
             "s.yaml: outputs.json: /tmp/x.json is not below the current directory; --overwrite"),
    scenario("outputs above", SCENARIO + "outputs: {report: ../x.html}",
             "s.yaml: outputs.report: ../x.html is not below the current directory"),
    scenario("outputs over a file of the user", SCENARIO + "outputs: {json: mine.txt}",
             "s.yaml: outputs.json: mine.txt exists and was not written by Fairlead; --overwrite",
             files=(("mine.txt", "precious"),)),
    scenario("an event that creates a pod with a misspelt field",
             SCENARIO + f"events: [{{at: 1m, create: {CREATED % 'containrs: []'}}}]",
             "s.yaml: events[0].create: Pod default/p: spec.containrs: unknown field; did you mean "
             "containers?"),
    scenario("an event that creates an unknown kind",
             SCENARIO + "events: [{at: 0, create: {apiVersion: v1, kind: A, metadata: {name: a}}}]",
             "s.yaml: events[0].create: A a: kind: v1 has no kind A that Kubernetes"),
    # --- outputs that would replace inputs or each other ------------------------------------------
    *(Case(f"the dump as {option}", f"whatif c.yaml --cordon n1 {option} c.yaml",
           (f"{option}: c.yaml is an input of this command; name another file",),
           (("c.yaml", NODE),))
      for option in ("--report", "--junit", "--commands")),
    Case("an applied file as the report", "whatif c.yaml --apply a.yaml --report a.yaml",
         ("--report: a.yaml is an input",), (("c.yaml", NODE), ("a.yaml", POD))),
    Case("an applied file of an alternative as the report",
         "whatif c.yaml --change=b:--apply=a.yaml --change=c:--cordon=n1 --report a.yaml",
         ("--report: a.yaml is an input",), (("c.yaml", NODE), ("a.yaml", POD))),
    Case("a plugin as the report", "whatif c.yaml --plugin cost.py:Cost=5 --report cost.py",
         ("--report: cost.py is an input",), (("c.yaml", NODE), ("cost.py", ""))),
    Case("a price file as the report", "whatif c.yaml --add-nodes 1 --instance-type t "
         "--instance-types t.csv,p.csv --report p.csv",
         ("--report: p.csv is an input",), (("c.yaml", NODE), ("t.csv", ""), ("p.csv", ""))),
    Case("a file of the folder as the report", "whatif . --cordon n1 --report ./c.yaml",
         ("--report: c.yaml is an input",), (("c.yaml", NODE),)),
    Case("a kubeconfig as the report", "whatif --kubeconfig k --cordon n1 --report k",
         ("--report: k is an input",), (("k", KUBECONFIG % "x"),)),
    Case("one file of two outputs", "whatif c.yaml --cordon n1 --report r --junit ./r",
         ("--junit: r is also the file of --report; name another file",), (("c.yaml", NODE),)),
    Case("the default report as another output",
         "whatif c.yaml --cordon n1 --commands fairlead-whatif.html",
         ("--commands: fairlead-whatif.html is also the file of --report",), (("c.yaml", NODE),)),
    Case("a report and none", "whatif c.yaml --cordon n1 --report r.html --no-report",
         ("--no-report: cannot be combined with --report r.html",), (("c.yaml", NODE),)),
    Case("the snapshot over its source", "snapshot c.yaml --from c.yaml",
         ("FILE: c.yaml is an input of this command; name another file",), (("c.yaml", NODE),)),
    Case("the snapshot as its key", "snapshot x.json --from c.yaml --anonymise ./x.json",
         ("FILE: x.json is also the file of --anonymise",), (("c.yaml", NODE),)),
    Case("the key as the revealed text", "snapshot k --from a.txt --reveal k",
         ("FILE: k is an input",), (("k", "{}"), ("a.txt", "hello"))),
    Case("the database as the audit log", "up --data-dir . --audit objects.db",
         ("--audit: objects.db is an input",), (("objects.db", ""),)),
    Case("the scenario as the report", "simulate s.yaml --report s.yaml",
         ("--report: s.yaml is an input",), (("s.yaml", SCENARIO),)),
    Case("the trace as the metrics", "simulate s.yaml --metrics n.csv",
         ("--metrics: n.csv is an input",),
         (("s.yaml", "cluster: {trace: {nodes: n.csv}}"), ("n.csv", "x"))),
    Case("one file of two outputs of a scenario", "simulate s.yaml --commands x.json",
         ("s.yaml: outputs.json: x.json is also the file of --commands",),
         (("s.yaml", SCENARIO + "outputs: {json: x.json}"),)),
    Case("the trace as the table of a sweep", "sweep s.yaml --vary seed=0..1 --out .",
         ("--out: cases.csv is an input",),
         (("s.yaml", "cluster: {trace: {nodes: cases.csv}}"), ("cases.csv", "x"))),
    Case("the snapshot as the audit log", "up --snapshot c.yaml --audit c.yaml",
         ("--audit: c.yaml is an input",), (("c.yaml", NODE),)),
    Case("a Secret that is not base64 in a local cluster", "up --snapshot c.yaml --kubeconfig k",
         ("c.yaml: Secret default/s: data.password: illegal base64 data at input byte 3",),
         (("c.yaml", documents(NODE, SECRET)),)),
    Case("the configuration as the decisions", "run --shadow --config k.yaml --decisions k.yaml",
         ("--decisions: k.yaml is an input",), (("k.yaml", "x"),)),
    # --- the command line itself -----------------------------------------------------------------
    Case("a mistyped option in place of the snapshot", "whatif --drian n1",
         ("whatif: --drian is not an option; did you mean --drain?",)),
    Case("only a mistyped option", "whatif --drian",
         ("whatif: --drian is not an option; did you mean --drain?",)),
    Case("an option after the options", "whatif dump.yaml -- --drain n1",
         ("whatif: --drain is not an option after --, which ends the options",)),
    Case("an option of another command", "simulate s.yaml --drain=n1",
         ("simulate: --drain is not an option; use the scenario's field events",)),
    Case("the beginning of several options", "whatif --fail n1",
         ("whatif: --fail is not an option; did you mean --fail-fraction, --fail-node",)),
    Case("an option that no command has", "simulate s.yaml --zzz",
         ("simulate: --zzz is not an option (see fairlead simulate --help)",)),
    Case("a mistyped option of a local cluster", "up --nodse 5",
         ("up: --nodse is not an option; did you mean --nodes?",)),
    Case("an unknown option of a local cluster in the background", "up --detach --nme=x",
         ("up: --nme is not an option",)),
    Case("an option in place of the command of a local cluster", "up -- --version",
         ("--version: is not a command",)),
    change("a node without its option", "n1", "whatif: 'n1' is one argument too many; is the name"),
    plan("a fit without its option", "fit dump.yaml deploy/shop/web",
         "fit: 'deploy/shop/web' is one argument too many; is --like missing?"),
    plan("a drain without its option", "drain-plan dump.yaml n1",
         "drain-plan: 'n1' is one argument too many; is --nodes missing?"),
    change("a negative startup time", "--cordon n1 --startup-time -1s",
           "needs a value; a value that starts with - is written --startup-time=-1s"),
    change("pools of a label that no node has", "--cordon n1 --group-by ghost",
           "--group-by: no node has the label ghost"),
    change("pools of alternatives of a label that no node has",
           "--change=b:--cordon=n1 --change=c:--drain=n1 --group-by ghost",
           "--group-by: no node has the label ghost"),
    Case("upgrades by a label that no node has", "upgrade-check dump.yaml --group-by ghost",
         ("--group-by: no node has the label ghost",), (("dump.yaml", NODE),)),
    Case("an explanation of no seeds", "explain dump.yaml --apply pod.yaml --seeds 0",
         ("--seeds: 0 is not from 1 to 1000",), (("dump.yaml", NODE), ("pod.yaml", POD))),
    Case("seeds of an applied pod", "explain dump.yaml --apply pod.yaml --seeds 3",
         ("--seeds: cannot be combined with --apply",), (("dump.yaml", NODE), ("pod.yaml", POD))),
    plan("explain a pod with a wrong type", "explain dump.yaml --apply p.yaml",
         "p.yaml: Pod shop/new: spec: Expected `object`, got `array`",
         files=(("p.yaml", OTHER_POD.partition("spec")[0] + "spec: [c]\n"),)),
    plan("explain a workload with a wrong type", "explain dump.yaml --apply d.yaml",
         "d.yaml: Deployment shop/web: spec.template.metadata",
         files=(("d.yaml", DEPLOYMENT.replace("metadata: {labels: {app: web}}", "metadata: x")),)),
    plan("apply a wrong type to a workload", "whatif dump.yaml --apply d.yaml",
         "d.yaml: Deployment shop/web: spec: Expected `object`, got `str`",
         files=(("d.yaml", DEPLOYMENT.partition("spec")[0] + "spec: x\n"),)),
    Case("an object before its snapshot", "explain pod/shop/web dump.yaml",
         ("arguments: the dump comes first: fairlead explain dump.yaml pod/shop/web",),
         (("dump.yaml", POD),)),
    *(Case(f"an instance type {name}", "size dump.yaml --instance-types t.csv", (problem,),
           (("dump.yaml", documents(NODE, POD)), ("t.csv", "name,cpu,memory,price\n" + row)))
      for name, row, problem in (
          ("without a cell", "small,4,0.1\n", "t.csv: line 2: has no cell for the column 'price'"),
          ("without memory", "small,4,,0.1\n", "t.csv: line 2: has no memory"),
          ("of a cell too many", "small,4,8Gi,1,2\n", "line 2: has more cells than the header"),
      )),
    # --- explain and the command line itself -----------------------------------------------------
    Case("explain nobody", "explain pod/none --snapshot dump.yaml", ("there is no Pod none",),
         (("dump.yaml", NODE),)),
    Case("explain without a snapshot", "explain pod/none",
         ("arguments: name a dump (SNAPSHOT), or a cluster",)),
    change("an option without its value", "--drain",
           "whatif: --drain needs a value (see fairlead whatif --help)"),
    Case("an unknown command", "whatfi dump.yaml", ("(see fairlead --help)",)),
    clock("a kubeconfig of no cluster", NODE, "current-context: has no current context"),
    clock("a kubeconfig of another context", KUBECONFIG.replace("name: a,", "name: b,") % "x",
          "there is no context 'a'; known contexts: b"),
    clock("a server of no port", KUBECONFIG % "'http://127.0.0.1:99999'",
          "clusters[a].server: 'http://127.0.0.1:99999' is not an http or https URL"),
    clock("a server of no name", KUBECONFIG % 5, "clusters[0].cluster.server: Expected `str`"),
    clock("a token of several lines", KUBECONFIG.replace("token: t", r'token: "t\nx"')
          % "'https://127.0.0.1:1'", "the Authorization header would contain characters"),
    clock("an authority of nobody", KUBECONFIG
          % "'https://127.0.0.1:1', certificate-authority-data: aGVsbG8=",
          "the certificate authority is not a PEM certificate"),
    clock("a server that is not there", KUBECONFIG % "'http://127.0.0.1:1'", "does not answer"),
    Case("conformance of nothing", "conformance", ("conformance: KIND is missing",)),
    Case("unknown command", "whatfi x", ("whatfi",)),
    change("an option twice", "--fail-node n1 --for 1h --for 2h",
           "whatif: --for is given more than once"),
    *(
        Case(f"a dump as a scenario of {line.partition(' ')[0]}", line,
             ("dump.yaml: is a dump, not a scenario; use fairlead whatif",),
             (("dump.yaml", '{"apiVersion": "v1", "kind": "List", "items": []}'),))
        for line in ("simulate dump.yaml", "sweep dump.yaml --vary seed=0..9")
    ),
    Case("nothing to ask about", "whatif", ("arguments: name a dump (SNAPSHOT), or a cluster",)),
    *(
        Case(f"a name of a kind that is no text, {option}", f"whatif dump.yaml {option}",
             ("dump.yaml: CustomResourceDefinition widgets.x.io: spec.names.shortNames: Expected",),
             (("dump.yaml", documents(NODE, DEFINITION, WIDGET)), ("w.yaml", WIDGET)))
        for option in ("--delete w/a", "--apply w.yaml")
    ),
    load_table("a cell of 200 kB", "time,workload,cpu\n0," + "a" * 200_000 + ",1\n",
        "load.csv: line 2: is not CSV"),
    Case("a list without a load", "whatif dump.yaml --load load.yaml",
         ("load.yaml: contains no load",),
         (("dump.yaml", documents(NODE, DEPLOYMENT)), ("load.yaml", "[]"))),
    load_table("a column of a load twice", "time,workload,cpu,cpu\n0,deploy/shop/web,1,2\n",
        "load.csv: line 1: the column 'cpu' is given twice"),
    load_table("old Macintosh line ends", "time,workload,cpu\r0,deploy/shop/web,x\r",
        "load.csv: line 2: cpu"),
    sweep("a range of huge numbers", "--vary seed=0.." + "9" * 5000, "seed: expected int, got str"),
    sweep("an item of a huge number", f"--vary a[{'9' * 500}]=1", "--vary"),
    Case("a sweep of a load of no workload", "sweep s.yaml --on processes:1 --vary seed=0",
         ("seed=0: s.yaml: line 3: load[0].workload: there is no Deployment web",),
         (("s.yaml", SCENARIO + "load:\n- workload: deploy/web\n  cpu: 1"),)),
    Case("a sweep of an unknown field", "sweep s.yaml --on processes:1 --vary seed=0",
         ("s.yaml: line 2: sede: unknown field",), (("s.yaml", SCENARIO + "sede: 1"),)),
    sweep("a sweep of nothing valid", "--vary cluster.generated.nodes=-1", "-1 is negative"),
    sweep("a seed of no random choice", "--vary seed=0..1 --random-seed 5",
          "--random-seed: needs --random"),
    sweep("a loss twice", "--lose node@1m --lose node@2m", "--lose: lost-node: is given twice"),
    policy("a negative limit", "maxNoOfPodsToEvictTotal: -1", "maxNoOfPodsToEvictTotal"),
    policy("a node selector in vain", "nodeSelector: 'a in ('", "nodeSelector", "not a selector"),
    policy("an unknown filter", "profiles: [{plugins: {filter: {enabled: [Foo]}}}]",
        "profiles[0].plugins.filter.enabled: unknown plugin 'Foo'"),
    snapshot("a LimitRange of an unknown version",
        documents(NODE, POD, RANGE.replace("v1", "v2") + "[[x]]"),
        "LimitRange shop/l: apiVersion: v2 is not supported; expected v1"),
    snapshot("a kind of another group without its group",
        documents(NODE, HOOKS.replace("admissionregistration.k8s.io/v1", "v2") + "[]"),
        "MutatingWebhookConfiguration h: apiVersion: v2 is not supported; expected admission"),
    policy("arguments of an idle strategy",
        "profiles: [{pluginConfig: [{name: PodLifeTime, args: {bogus: 1}}]}]",
        "profiles[0].pluginConfig[0].args.bogus: unknown field"),
]  # fmt: skip


@pytest.fixture
def meet(tmp_path, monkeypatch, capsys):
    """Runs a case in its folder; returns (code, stdout, stderr, created files)."""

    def run_case(case):
        for name, content in case.files:
            data = content if isinstance(content, bytes) else content.encode()
            (tmp_path / name).write_bytes(data)
        monkeypatch.chdir(tmp_path)
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(case.stdin)))
        monkeypatch.setattr(sys, "dont_write_bytecode", True)  # Python's own files, for plugins
        code = run(case.arguments.split())
        printed = capsys.readouterr()
        given = {name for name, _ in case.files}
        made = {str(p.relative_to(tmp_path)) for p in tmp_path.rglob("*")} - given
        return code, printed.out, printed.err, made

    return run_case


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name.replace(" ", "-"))
def test_bad_input_gets_one_line_and_exit_code_2(case, meet):
    code, out, err, made = meet(case)
    assert code == 2
    assert out == ""
    assert err.count("\n") == 1
    assert err.endswith("\n")
    assert err.startswith(("fairlead: ", "fairlead conformance: "))
    assert "Traceback" not in err
    assert len(err) < 600
    for text in case.says:
        assert text in err
    assert made == set()
    for name, content in case.files:
        data = content if isinstance(content, bytes) else content.encode()
        assert Path(name).read_bytes() == data


def test_the_cases_have_different_names():
    names = [case.name for case in CASES]
    assert sorted(set(names)) == sorted(names)


def test_hostile_names_cannot_break_the_error_line(meet):
    """Control characters from a file do not reach the terminal."""
    hostile = NODE.replace("name: n1", r'name: "n\n\e[31m\r\x9b1m\u202e1"')
    case = Case("hostile", "whatif dump.yaml", (), (("dump.yaml", hostile),))
    code, _, err, _ = meet(case)
    assert code == 2
    assert err.count("\n") == 1
    assert not {"\x1b", "\x9b", "\u202e"} & set(err)
    assert "\r" not in err


def test_hostile_names_cannot_break_the_lines_of_an_answer(meet):
    """Control characters in the name of an owner do not reach the terminal."""
    owner = (
        r'{apiVersion: x/v1, kind: Foo, name: "o\n\e[31m\x9b1m\u202e1", uid: u, controller: true}'
    )
    owned = POD.replace("namespace: shop", f"namespace: shop, ownerReferences: [{owner}]")
    case = Case("hostile", "whatif dump.yaml --no-report --drain n1", (), (
        ("dump.yaml", documents(NODE, owned.replace("spec: {", "spec: {nodeName: n1, "))),
    ))  # fmt: skip
    code, out, err, _ = meet(case)
    assert (code, err) == (1, "")
    assert "o [31m 1m 1" in out
    assert not {"\x1b", "\x9b", "\u202e"} & set(out)


def test_input_is_never_changed(meet, tmp_path):
    case = snapshot("good", documents(NODE, POD), arguments="whatif dump.yaml --no-report")
    code, _, err, made = meet(case)
    assert (code, err, made) == (0, "", set())
    assert (tmp_path / "dump.yaml").read_text() == documents(NODE, POD)
    assert Path("dump.yaml").exists()


def test_conformance_without_cases_is_refused(meet):
    """Without cases, the recording would always agree."""
    case = Case("none", "conformance scheduling c.jsonl", (), (("c.jsonl", ""),))
    code, _, err, _ = meet(case)
    assert code == 2
    assert err == "fairlead conformance: no case to replay\n"


@pytest.mark.parametrize("link", [Path.symlink_to, Path.hardlink_to])
def test_an_output_that_links_to_the_input_is_refused(link, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("c.yaml").write_text(NODE)
    link(Path("other.html"), Path("c.yaml"))
    assert run(["whatif", "c.yaml", "--cordon", "n1", "--report", "other.html"]) == 2
    assert "--report: other.html is an input" in capsys.readouterr().err
    assert Path("c.yaml").read_text() == NODE


def test_an_earlier_report_in_the_folder_is_replaced(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("c.yaml").write_text(NODE)
    Path("r.html").write_text("old")
    assert run(["whatif", ".", "--cordon", "n1", "--report", "r.html"]) == 0
    assert Path("r.html").read_text() != "old"


def test_earlier_commands_beside_the_snapshot_are_replaced(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("c.yaml").write_text(NODE)
    arguments = ["whatif", "c.yaml", "--cordon", "n1", "--commands", "c.json"]
    assert [run(arguments) for _ in range(2)] == [0, 0]


def test_a_what_if_without_a_change_keeps_the_earlier_report(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("c.yaml").write_text(NODE)
    assert run(["whatif", "c.yaml", "--cordon", "n1"]) == 0
    before = Path("fairlead-whatif.html").read_text()
    assert run(["whatif", "c.yaml"]) == 0
    assert Path("fairlead-whatif.html").read_text() == before


def test_a_backup_cannot_replace_a_file_of_its_data_directory(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("data").mkdir()
    Path("data/tokens").write_text("precious")
    assert run(["backup", "data/tokens", "--data-dir", "data"]) == 2
    assert "FILE: data/tokens is in the directory of --data-dir" in capsys.readouterr().err
    assert Path("data/tokens").read_text() == "precious"
