"""ValidatingAdmissionPolicy and MutatingAdmissionPolicy: admission rules written in CEL.

upstream: staging/src/k8s.io/apiserver/pkg/admission/plugin/policy
"""
