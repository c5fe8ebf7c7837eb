"""`[tracking]`: an MLflow server that gets every training, and which version is in use."""

from __future__ import annotations

from pydantic import Field

from ringfence.jobs.config.section import Section


class TrackingSettings(Section):
    """An MLflow server: every training's parameters, curves and files; which version is in use."""

    uri: str | None = Field(
        None,
        description="Where MLflow is: http://host:5000, https://…, or sqlite:///mlflow.db. Without "
        "it nothing is sent. User and password come from MLflow's own variables "
        "(`MLFLOW_TRACKING_USERNAME`, `MLFLOW_TRACKING_PASSWORD`). Needs `ringfence[tracking]`.",
    )
    experiment: str = Field(
        "ringfence", min_length=1, description="Name of MLflow's experiment; made where missing."
    )
    weights: bool = Field(
        False,
        description="Send the weights too; the manifest, without them, and the model's card always "
        "go.",
    )
    timeout_seconds: float = Field(
        30.0,
        gt=0,
        description="A server that has not taken everything by then is left alone. Whatever "
        "happens here, the training is done and recorded.",
    )
