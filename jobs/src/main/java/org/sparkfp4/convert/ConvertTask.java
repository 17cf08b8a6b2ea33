package org.sparkfp4.convert;

import java.io.IOException;
import org.apache.spark.TaskContext;
import org.apache.spark.broadcast.Broadcast;
import org.apache.spark.util.SerializableConfiguration;
import org.sparkfp4.kernels.KernelChoice;
import org.sparkfp4.kernels.LayoutKernels;
import org.sparkfp4.output.SourceFiles;
import org.sparkfp4.output.SourcePieces;
import org.sparkfp4.output.TaskFiles;
import org.sparkfp4.output.TaskOutput;
import org.sparkfp4.output.WritingTask;
import scala.collection.Iterator;

/** A task that writes files, or parts of them, by their numbers. */
abstract class ConvertTask extends WritingTask<ConvertPlan, Integer> {
  private static final long serialVersionUID = 1L;

  private final KernelChoice kernels;

  /** @param kernels what arranges experts */
  ConvertTask(Broadcast<ConvertPlan> plan, Broadcast<SerializableConfiguration> conf, TaskOutput output,
      KernelChoice kernels) {
    super(plan, conf, output);
    this.kernels = kernels;
  }

  /** Writes the file of a number. */
  abstract void write(int number, TaskFiles output) throws IOException;

  @Override
  protected final void write(TaskContext context, Iterator<Integer> numbers, TaskFiles output) throws IOException {
    while (numbers.hasNext()) {
      write(numbers.next(), output);
    }
  }

  /** The kernels of the machine that the task runs on. */
  ExpertArranger arranger() {
    return new ExpertArranger(LayoutKernels.chosen(kernels));
  }

  SourceFiles source(SourcePieces pieces) {
    return new SourceFiles(plan().input(), plan().sources(), conf(), pieces);
  }
}
