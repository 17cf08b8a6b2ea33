package org.sparkfp4.kernels;

import org.apache.arrow.memory.RootAllocator;
import org.junit.jupiter.api.AfterEach;

/** A test of matrices: has memory of theirs, and fails if some of it is not given back. */
public abstract class MatrixTest {
  protected final RootAllocator allocator = new RootAllocator();
  protected final MatrixMemory memory = new MatrixMemory(allocator);

  @AfterEach
  void giveBack() {
    memory.close();
    allocator.close();
  }
}
