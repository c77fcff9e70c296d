"""MutatingAdmissionWebhook and ValidatingAdmissionWebhook: admission plugins that call webhooks.

upstream: staging/src/k8s.io/apiserver/pkg/admission/plugin/webhook
"""
