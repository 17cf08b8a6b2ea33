package org.sparkfp4.source;

import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.lang.reflect.Field;
import java.nio.ByteBuffer;

/** Gives direct and mapped buffers back at once. */
final class OffHeapMemory {
  private static final MethodHandle INVOKE_CLEANER = invokeCleaner();

  private OffHeapMemory() {}

  /** Frees or unmaps a buffer that is no slice; nobody may touch it any more. */
  static void free(ByteBuffer buffer) {
    try {
      INVOKE_CLEANER.invokeExact(buffer);
    } catch (RuntimeException | Error e) {
      throw e;
    } catch (Throwable e) {
      throw new IllegalStateException("Cannot free a buffer of " + buffer.capacity() + " bytes", e);
    }
  }

  // By reflection, since javac warns of the class by name and there is no other way on Java 17.
  private static MethodHandle invokeCleaner() {
    try {
      Class<?> unsafe = Class.forName("sun.misc.Unsafe");
      Field instance = unsafe.getDeclaredField("theUnsafe");
      instance.setAccessible(true);
      return MethodHandles.lookup()
          .findVirtual(unsafe, "invokeCleaner", MethodType.methodType(void.class, ByteBuffer.class))
          .bindTo(instance.get(null));
    } catch (ReflectiveOperationException e) {
      throw new ExceptionInInitializerError(e);
    }
  }
}
