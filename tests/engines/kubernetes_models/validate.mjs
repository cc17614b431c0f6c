// Reads Kubernetes objects, a JSON array, from standard input and holds each to the schema of its kind in the
// kubernetes-models packages. Prints "KIND NAME" for each; ends with status 1 and the reason at the first wrong one.
import { readFileSync } from "node:fs";

const customGroups = new Map([["monitoring.coreos.com", "@kubernetes-models/prometheus-operator"]]);

for (const object of JSON.parse(readFileSync(0, "utf8"))) {
  const [group] = object.apiVersion.split("/");
  const packageName = customGroups.get(group) ?? "kubernetes-models";
  const { [object.kind]: Model } = await import(`${packageName}/${object.apiVersion}/${object.kind}`);
  try {
    new Model(object).validate();
  } catch (error) {
    console.error(`${object.kind} ${object.metadata.name}: ${error.message}`);
    process.exit(1);
  }
  console.log(`${object.kind} ${object.metadata.name}`);
}
