package org.sparkfp4.checkpoint;

/** A tensor outside the family's blocks and what it is for. */
public record RoledTensor(LocatedTensor tensor, Role role) {}
