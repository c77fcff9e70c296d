"""MutatingAdmissionWebhook and ValidatingAdmissionWebhook.

upstream: staging/src/k8s.io/apiserver/pkg/admission/plugin/webhook
"""
