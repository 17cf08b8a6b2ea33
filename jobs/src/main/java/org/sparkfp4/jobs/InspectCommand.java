package org.sparkfp4.jobs;

import java.util.concurrent.Callable;
import picocli.CommandLine.Command;

@Command(name = "inspect", mixinStandardHelpOptions = true)
final class InspectCommand implements Callable<Integer> {
  @Override
  public Integer call() {
    throw new JobException("Cannot inspect yet.");
  }
}
