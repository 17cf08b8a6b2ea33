package org.sparkfp4.functions;

/** The arguments of one batch as Java values, wherever its columns are; payloads are where kernels find them. */
interface UnitArguments {
  /** The row's members, or null if it has none: data0 is null. */
  Segments segments(int row);

  Long longAt(int argument, int row);

  Float floatAt(int argument, int row);

  /** The statistics in an argument, or null. */
  ImportanceBytes importanceAt(int argument, int row);
}
