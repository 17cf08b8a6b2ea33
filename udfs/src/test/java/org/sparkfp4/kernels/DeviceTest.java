package org.sparkfp4.kernels;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.HashMap;
import java.util.Map;
import org.apache.spark.executor.Executor;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.Test;

/** The choice of a device, on machines with a GPU and without. */
class DeviceTest {
  @Test
  void namesAreThoseOfOptions() {
    for (Device device : Device.values()) {
      assertThat(Device.named(device.optionName())).isEqualTo(device);
    }

    assertThatThrownBy(() -> Device.named("gpu")).isInstanceOf(IllegalArgumentException.class)
        .hasMessage("Invalid device: gpu, must be one of auto, cpu, cuda, rapids (--device or spark.fp4.device)");
  }

  @Test
  void settingsSayWhatIsAskedFor() {
    Map<String, String> settings = new HashMap<>();
    assertThat(KernelChoice.of(settings::get)).isEqualTo(new KernelChoice(Device.AUTO, "auto"));
    settings.put("spark.fp4.device", "cuda");
    settings.put("spark.fp4.cpu.tier", "avx2");
    assertThat(KernelChoice.of(settings::get)).isEqualTo(new KernelChoice(Device.CUDA, "avx2"));
  }

  @Test
  void cpuIsNoGpu() {
    assertThat(Nvfp4Kernels.chosen(KernelChoice.cpu("auto")).tier()).isNotEqualTo("cuda");
    assertThat(Nvfp4Kernels.chosen(KernelChoice.cpu("java")).tier()).isEqualTo("java");
  }

  @Test
  void rapidsRunsNothingOnHostMemory() {
    KernelChoice choice = new KernelChoice(Device.RAPIDS, "auto");

    assertThatThrownBy(() -> Nvfp4Kernels.chosen(choice)).isInstanceOf(IllegalStateException.class)
        .hasMessage("Cannot run on device rapids: the RAPIDS Accelerator left this part of the plan to the CPU. "
            + "spark.rapids.sql.explain=NOT_ON_GPU says why; device auto would go on");
    assertThat(Nvfp4Kernels.chosen(choice.onHost()).tier()).isNotEqualTo("cuda");
  }

  @Test
  void withoutGpuAutoTakesCpuAndCudaRefuses() {
    Assumptions.assumeTrue(CudaLibrary.absence().isPresent(), "a GPU answers here");
    String reason = CudaLibrary.absence().get();

    assertThat(Nvfp4Kernels.chosen(new KernelChoice(Device.AUTO, "auto")).tier()).isNotEqualTo("cuda");
    for (Device device : new Device[] {Device.CUDA, Device.RAPIDS}) {
      assertThatThrownBy(() -> Nvfp4Kernels.require(new KernelChoice(device, "auto")))
          .isInstanceOf(IllegalArgumentException.class)
          .hasMessage("Cannot run on device " + device.optionName() + ": " + reason
              + ". Run where there is a GPU, or choose device cpu or auto");
    }

    assertThatThrownBy(() -> Nvfp4Kernels.chosen(new KernelChoice(Device.CUDA, "auto")))
        .isInstanceOf(IllegalArgumentException.class).hasMessageStartingWith("Cannot run on device cuda: ");
  }

  @Test
  void withGpuAutoTakesIt() {
    Assumptions.assumeTrue(CudaLibrary.absence().isEmpty(), "no GPU answers here");

    assertThat(Nvfp4Kernels.chosen(new KernelChoice(Device.AUTO, "auto")).tier()).isEqualTo("cuda");
    Nvfp4Kernels.require(new KernelChoice(Device.CUDA, "auto"));
  }

  @Test
  void assignedDeviceIsTaken() {
    assertThat(CudaDevices.of("1", 2)).isOne();
    assertThat(CudaDevices.of(" 0 ", 1)).isZero();
    for (String address : new String[] {"2", "-1", "GPU-41dee0"}) {
      assertThatThrownBy(() -> CudaDevices.of(address, 2)).isInstanceOf(IllegalStateException.class)
          .hasMessageStartingWith("Cannot use the GPU that Spark assigned, " + address + ": devices here are 0 to 1. ");
    }
  }

  /** Spark ends an executor for such an error, however deep it lies, and starts another. */
  @Test
  void lostDeviceEndsAnExecutor() {
    assertThat(Executor.isFatalError(new DeviceLostError("lost"), 5)).isTrue();
    assertThat(Executor.isFatalError(new RuntimeException(new DeviceLostError("lost")), 5)).isTrue();
  }
}
