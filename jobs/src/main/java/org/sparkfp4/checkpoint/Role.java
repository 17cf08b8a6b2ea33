package org.sparkfp4.checkpoint;

import com.fasterxml.jackson.annotation.JsonProperty;

/** What a tensor of a checkpoint is for. */
public enum Role {
  /** Gate, up or down of an expert that a router chooses. */
  @JsonProperty("routed_expert")
  ROUTED_EXPERT("routed experts"),
  /** Gate, up or down of an expert that every token passes. */
  @JsonProperty("shared_expert")
  SHARED_EXPERT("shared experts"),
  /** Gate, up or down (or the two of BERT) of a layer without experts. */
  @JsonProperty("dense_mlp")
  DENSE_MLP("dense MLP"),
  /** Query, key, value and output projections. */
  @JsonProperty("attention")
  ATTENTION("attention"),
  /** The projections of multi-head latent attention that runtimes call as linear layers. */
  @JsonProperty("latent_attention")
  LATENT_ATTENTION("latent attention"),
  /** A projection of latent attention that runtimes multiply into others when they load it, in high precision. */
  @JsonProperty("absorbed")
  ABSORBED("absorbed into latent attention by runtimes"),
  /** What chooses the positions that sparse attention looks at. */
  @JsonProperty("indexer")
  INDEXER("indexer of sparse attention"),
  /** Linear attention, state spaces and convolutions: what mixes positions without queries and keys. */
  @JsonProperty("linear_attention")
  LINEAR_ATTENTION("linear attention, state space or convolution"),
  /** What chooses experts, or weighs a shared one. */
  @JsonProperty("router")
  ROUTER("router"),
  @JsonProperty("embedding")
  EMBEDDING("embedding"),
  @JsonProperty("lm_head")
  LM_HEAD("output head"),
  @JsonProperty("pooler")
  POOLER("pooler"),
  @JsonProperty("vision")
  VISION("vision"),
  /** Layers behind the last that predict further tokens. */
  @JsonProperty("mtp")
  MTP("multi-token prediction"),
  /** Known by its name, in every family. */
  @JsonProperty("norm")
  NORM("norm"),
  /** What the family's table does not name, or names as nothing of the above. */
  @JsonProperty("other")
  OTHER("other", "no layer that its family quantizes");

  private final String description;
  private final String reason;

  Role(String description) {
    this(description, description);
  }

  Role(String description, String reason) {
    this.description = description;
    this.reason = reason;
  }

  /** The role in the words of plans and reports. */
  public String description() {
    return description;
  }

  /** Why a tensor of this role stays as it is, where nothing else keeps it. */
  public String reason() {
    return reason;
  }
}
