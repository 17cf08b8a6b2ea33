package org.sparkfp4.functions;

import java.util.Optional;
import java.util.concurrent.atomic.AtomicBoolean;
import org.apache.spark.SparkEnv;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.sparkfp4.formats.Nvfp4Recipe;
import org.sparkfp4.formats.ScaleSearch;
import org.sparkfp4.kernels.Device;
import org.sparkfp4.kernels.KernelChoice;

/**
 * Makes the functions for the session at hand: with the face that runs on the RAPIDS Accelerator's columns where driver
 * and executors have that plugin and the device may be {@code rapids}; without it, and so without a class of the
 * plugin's, everywhere else.
 */
public final class Nvfp4Functions {
  private static final Logger LOG = LoggerFactory.getLogger(Nvfp4Functions.class);
  /** Of a build with the profile rapids alone. */
  private static final String RAPIDS = "org.sparkfp4.functions.RapidsFunctions";
  private static final AtomicBoolean TOLD = new AtomicBoolean();

  private Nvfp4Functions() {}

  /** {@code nvfp4_quantize} over units; call it on the driver. */
  public static Nvfp4Quantize quantize(Nvfp4Recipe recipe, ScaleSearch search, KernelChoice kernels) {
    return rapids(kernels).map(provider -> provider.quantize(recipe, search, kernels))
        .orElseGet(() -> new Nvfp4Quantize(recipe, search, kernels));
  }

  /** {@code nvfp4_amax} over units; call it on the driver. */
  public static Nvfp4Amax amax(KernelChoice kernels) {
    return rapids(kernels).map(provider -> provider.amax(kernels)).orElseGet(() -> new Nvfp4Amax(kernels));
  }

  /**
   * {@code nvfp4_dequantize}; call it on the driver.
   *
   * @param kernels of which the device alone counts: on host memory it is Java
   */
  public static Nvfp4Dequantize dequantize(Nvfp4Recipe recipe, KernelChoice kernels) {
    return rapids(kernels).map(provider -> provider.dequantize(recipe)).orElseGet(() -> new Nvfp4Dequantize(recipe));
  }

  /** {@code mxfp4_dequantize}, which goes the same way. */
  public static Mxfp4Dequantize mxfp4Dequantize(KernelChoice kernels) {
    return rapids(kernels).map(FunctionProvider::mxfp4Dequantize).orElseGet(Mxfp4Dequantize::new);
  }

  /** Whether this jar was built with the functions' face for the RAPIDS Accelerator. */
  public static boolean hasRapidsFace() {
    return provider().isPresent();
  }

  private static Optional<FunctionProvider> rapids(KernelChoice kernels) {
    boolean isWanted = kernels.device() == Device.RAPIDS || kernels.device() == Device.AUTO;
    SparkEnv env = SparkEnv.get();
    if (!isWanted || env == null || !RapidsAccelerator.isLoaded(env.conf())) {
      return Optional.empty();
    }

    Optional<FunctionProvider> provider = provider();
    if (provider.isEmpty() && TOLD.compareAndSet(false, true)) {
      LOG.warn("The SQL functions stay off the GPU's columns: this jar was built without their face for the RAPIDS "
          + "Accelerator");
    }

    return provider;
  }

  private static Optional<FunctionProvider> provider() {
    try {
      return Optional.of((FunctionProvider) Class.forName(RAPIDS).getConstructor().newInstance());
    } catch (ClassNotFoundException e) {
      return Optional.empty();
    } catch (ReflectiveOperationException e) {
      throw new IllegalStateException("Cannot make the functions for the RAPIDS Accelerator", e);
    }
  }
}
