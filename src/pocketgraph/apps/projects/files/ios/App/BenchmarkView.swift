import SwiftUI

/// Runs the model on zeros, one run to warm up and twenty more, and shows the times.
struct BenchmarkView: View {
    @State private var text = ""
    @State private var isRunning = false

    var body: some View {
        VStack(spacing: 20) {
            Button("Run the benchmark") { measure() }
                .buttonStyle(.borderedProminent)
                .disabled(isRunning)
            ScrollView {
                Text(text)
                    .font(.system(.body, design: .monospaced))
                    .frame(maxWidth: .infinity, alignment: .leading)
            }
        }
        .padding()
    }

    private func measure() {
        isRunning = true
        Task {
            do {
                text = try await BenchmarkView.measured()
            } catch {
                text = error.localizedDescription
            }
            isRunning = false
        }
    }

    /// Computed beside the main thread.
    nonisolated private static func measured() async throws -> String {
        let runs = 20
        let classifier = try Classifier()
        let inputs = Facts.inputs.map { [Float](repeating: 0, count: $0.count) }
        var outputs = try classifier.run(inputs)
        var times: [Double] = []
        for _ in 0..<runs {
            let begun = Date()
            outputs = try classifier.run(inputs)
            times.append(1000 * Date().timeIntervalSince(begun))
        }
        times.sort()
        let average = times.reduce(0, +) / Double(runs)
        let line = String(format: "average %.2f ms, median %.2f ms, fastest %.2f ms", average, times[runs / 2], times[0])
        return "\(runs) runs: \(line)\n\(Classifier.words(outputs))"
    }
}
