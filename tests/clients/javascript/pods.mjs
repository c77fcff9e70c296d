// Creates, watches, patches and deletes a pod; prints what it saw as one line of JSON.

import * as k8s from "@kubernetes/client-node";

const [, , kubeconfig, namespace] = process.argv;
const config = new k8s.KubeConfig();
config.loadFromFile(kubeconfig);
const core = config.makeApiClient(k8s.CoreV1Api);

const seen = { phases: [] };
const ready = new Promise((resolve, reject) => {
  const informer = k8s.makeInformer(config, `/api/v1/namespaces/${namespace}/pods`, () =>
    core.listNamespacedPod({ namespace }),
  );
  const look = (pod) => {
    seen.phases.push(pod.status.phase);
    if (pod.status.phase === "Running") {
      resolve();
    }
  };
  informer.on("add", look);
  informer.on("update", look);
  informer.on("error", reject);
  informer.start();
});

const made = await core.createNamespacedPod({
  namespace,
  body: { metadata: { name: "p" }, spec: { containers: [{ name: "c", image: "nginx" }] } },
});
seen.created = made.metadata.name;
await ready;

const patched = await core.patchNamespacedPod({
  namespace,
  name: "p",
  body: [{ op: "add", path: "/metadata/labels", value: { a: "b" } }],
});
seen.labels = patched.metadata.labels;

await core.deleteNamespacedPod({ namespace, name: "p", gracePeriodSeconds: 0 });
try {
  await core.readNamespacedPod({ namespace, name: "p" });
} catch (refusal) {
  seen.refusal = refusal.code;
}

const objects = k8s.KubernetesObjectApi.makeApiClient(config);
const map = { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "c", namespace } };
const applied = await objects.patch(
  { ...map, data: { a: "b" } },
  undefined,
  undefined,
  "node",
  true,
  k8s.PatchStrategy.ServerSideApply,
);
seen.managers = applied.metadata.managedFields.map((entry) => `${entry.manager} ${entry.operation}`);

console.log(JSON.stringify(seen));
process.exit(0);
