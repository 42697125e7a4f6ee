import PhotosUI
import SwiftUI

/// Runs the model once: on a photo, or on zeros where it takes no pictures.
struct SimpleView: View {
    @State private var text = ""
    @State private var isPicking = false
    @State private var picked: PhotosPickerItem?

    var body: some View {
        VStack(spacing: 20) {
            Button(Facts.takesPictures ? "Choose a photo" : "Run") {
                if Facts.takesPictures { isPicking = true } else { run(nil) }
            }
            .buttonStyle(.borderedProminent)
            ScrollView {
                Text(text)
                    .font(.system(.body, design: .monospaced))
                    .frame(maxWidth: .infinity, alignment: .leading)
            }
        }
        .padding()
        .photosPicker(isPresented: $isPicking, selection: $picked, matching: .images)
        .onChange(of: picked) {
            guard let photo = picked else { return }
            picked = nil // so that the same photo can be chosen again
            run(photo)
        }
    }

    private func run(_ photo: PhotosPickerItem?) {
        Task {
            do {
                var file: Data?
                if let photo { file = try await photo.loadTransferable(type: Data.self) ?? Data() }
                text = try await SimpleView.answer(file)
            } catch {
                text = error.localizedDescription
            }
        }
    }

    /// What the model says of a photo's file, or of zeros; computed beside the main thread.
    nonisolated private static func answer(_ file: Data?) async throws -> String {
        let classifier = try Classifier()
        let outputs: [[Float]]
        if let file {
            guard let picture = UIImage(data: file), let pixels = upright(picture) else { throw EngineError.noPicture }
            outputs = try classifier.run(pixels)
        } else {
            outputs = try classifier.run(Facts.inputs.map { [Float](repeating: 0, count: $0.count) })
        }
        let found = Facts.givesScores ? Classifier.best(outputs[0], threshold: -.infinity) : []
        let lines = found.map { String(format: "%.3f  ", $0.score) + $0.title }
        return lines.isEmpty ? Classifier.words(outputs) : lines.joined(separator: "\n")
    }

    /// A photo's pixels the right way up.
    nonisolated private static func upright(_ picture: UIImage) -> CGImage? {
        let format = UIGraphicsImageRendererFormat()
        format.scale = 1
        let drawn = UIGraphicsImageRenderer(size: picture.size, format: format).image { _ in
            picture.draw(in: CGRect(origin: .zero, size: picture.size))
        }
        return drawn.cgImage
    }
}
